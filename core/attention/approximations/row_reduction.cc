#include "core/attention/approximations/row_reduction.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/heads/attended_keys.h"
#include "core/attention/heads/size.h"
#include "core/attention/models/head_projection.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

absl::Status CheckFinite(MatrixView rows,
                         std::span<const std::int32_t> positions,
                         absl::string_view name) {
  for (const std::int32_t position : positions) {
    if (!std::isnan(RowNorm(rows.Row(position).data(), rows.dim))) continue;
    return NotFinite(rows.Row(position),
                     absl::StrCat(name, "[", position, "]"));
  }
  return absl::OkStatus();
}

// E [row_count, count], a row at a time. Gives the factors of the rows [begin,
// begin + size); those of the others are 0.
class ReductionMatrix {
 public:
  ReductionMatrix(const LinformerOptions& options, std::int64_t row_count,
                  std::int64_t count)
      : options_(options), row_count_(row_count), count_(count) {
    if (options.kind == ReductionKind::kRandom) normals_.resize(Size(count));
  }

  void Load(std::int64_t r) {
    if (options_.kind == ReductionKind::kSegmentMeans) {
      begin_ = Size(r * count_ / row_count_);
      size_ = Size((r + 1) * count_ / row_count_) - begin_;
      scale_ = 1 / static_cast<double>(size_);
      return;
    }
    const std::int64_t drawn = count_ + count_ % 2;  // drawn in pairs
    FillNormals(NormalUse::kRowReduction, options_.seed,
                static_cast<std::uint64_t>(r * drawn), normals_);
    size_ = normals_.size();
    scale_ = 1 / std::sqrt(static_cast<double>(row_count_));
  }

  std::size_t begin() const { return begin_; }
  std::size_t size() const { return size_; }
  // Returns the factor of row begin + i.
  double factor(std::size_t i) const {
    return normals_.empty() ? scale_ : scale_ * double{normals_[i]};
  }

 private:
  const LinformerOptions& options_;
  const std::int64_t row_count_;
  const std::int64_t count_;
  std::vector<float> normals_;  // [count] under kRandom, else empty
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
  double scale_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Matrix>> ReduceRows(
    std::span<const MatrixView> inputs, std::span<const std::int32_t> positions,
    const LinformerOptions& options, const Interrupt& interrupt) {
  const auto count = static_cast<std::int64_t>(positions.size());
  const std::int64_t reduced_count = std::min(options.row_count, count);
  std::vector<Matrix> reduced;
  std::int64_t max_dim = 0;
  for (const MatrixView rows : inputs) {
    reduced.push_back({reduced_count, rows.dim, {}});
    reduced.back().data.reserve(Size(reduced_count * rows.dim));
    max_dim = std::max(max_dim, rows.dim);
  }
  ReductionMatrix matrix(options, reduced_count, count);
  std::vector<double> sum(Size(max_dim));
  for (std::int64_t r = 0; r < reduced_count; ++r) {
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    matrix.Load(r);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const MatrixView rows = inputs[k];
      std::fill_n(sum.begin(), rows.dim, 0.0);
      for (std::size_t i = 0; i < matrix.size(); ++i) {
        const std::int32_t position = positions[matrix.begin() + i];
        ActiveKernels().AddScaled(matrix.factor(i), rows.Row(position).data(),
                                  rows.dim, sum.data());
      }
      std::transform(sum.begin(), sum.begin() + rows.dim,
                     std::back_inserter(reduced[k].data),
                     [](double d) { return static_cast<float>(d); });
    }
  }
  return reduced;
}

absl::StatusOr<ReducedKeys> ReduceKeys(const MultiHeadInput& input,
                                       const LinformerOptions& options) {
  const std::vector<std::int32_t> attended = AttendedKeys(input);
  const bool is_shared = input.values.data == input.keys.data &&
                         input.values.dim == input.keys.dim;
  std::vector<MatrixView> inputs = {input.keys};
  std::vector<absl::string_view> names = {input.names.keys};
  if (!is_shared) {
    inputs.push_back(input.values);
    names.push_back(input.names.values);
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    ATTENDANT_RETURN_IF_ERROR(CheckFinite(inputs[k], attended, names[k]));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      std::vector<Matrix> reduced,
      ReduceRows(inputs, attended, options, input.interrupt));
  for (std::size_t k = 0; k < reduced.size(); ++k) {
    const MatrixView rows = reduced[k].view();
    for (std::int64_t r = 0; r < rows.row_count; ++r) {
      if (!std::isnan(RowNorm(rows.Row(r).data(), rows.dim))) continue;
      return InvalidField(names[k],
                          "vectors whose random combination overflows",
                          "ones within the range of floats");
    }
  }
  ReducedKeys keys;
  keys.values = is_shared ? reduced[0] : std::move(reduced[1]);
  keys.keys = std::move(reduced[0]);
  return keys;
}

}  // namespace attendant
