// Non-owning views of row-major float matrices.
#ifndef ATTENDANT_CORE_BASE_VIEWS_H_
#define ATTENDANT_CORE_BASE_VIEWS_H_

#include <cstdint>
#include <span>

namespace attendant {

// The largest dimension of keys and values.
inline constexpr std::int64_t kMaxDimension = 8192;

// `row_count` rows of `dim` floats, row r at data + r * dim, without padding.
// The floats must outlive the view.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t row_count = 0;
  std::int64_t dim = 0;

  std::span<const float> Row(std::int64_t row) const {
    return {data + row * dim, static_cast<std::size_t>(dim)};
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_VIEWS_H_
