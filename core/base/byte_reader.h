// Taking stored bytes apart.
#ifndef ATTENDANT_CORE_BASE_BYTE_READER_H_
#define ATTENDANT_CORE_BASE_BYTE_READER_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant {

// Reads little-endian values from the front of bytes, which must outlive it.
// Every method checks what is left first: it returns false, and allocates and
// reads nothing, if that is too little. Not thread-safe.
class ByteReader {
 public:
  static_assert(std::endian::native == std::endian::little,
                "numbers are copied as they lie in memory");

  explicit ByteReader(absl::string_view bytes) : left_(bytes) {}

  std::size_t left() const { return left_.size(); }

  template <typename T>
  bool Read(T& number) {
    static_assert(std::is_arithmetic_v<T>);
    if (left_.size() < sizeof(T)) return false;
    std::memcpy(&number, left_.data(), sizeof(T));
    left_.remove_prefix(sizeof(T));
    return true;
  }

  bool ReadText(std::uint64_t size, std::string& text) {
    if (left_.size() < size) return false;
    text.assign(left_.data(), size);
    left_.remove_prefix(size);
    return true;
  }

  bool ReadFloats(std::uint64_t count, std::vector<float>& floats) {
    if (left_.size() / sizeof(float) < count) return false;
    floats.resize(count);
    if (count == 0) return true;
    std::memcpy(floats.data(), left_.data(), count * sizeof(float));
    left_.remove_prefix(count * sizeof(float));
    return true;
  }

 private:
  absl::string_view left_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_BYTE_READER_H_
