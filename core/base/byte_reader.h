// Reads and writes numbers in stored bytes.
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

static_assert(std::endian::native == std::endian::little,
              "numbers are copied as they lie in memory");

// Appends `number` in the format that ByteReader reads.
template <typename T>
void AppendNumber(T number, std::string& bytes) {
  static_assert(std::is_arithmetic_v<T>);
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Appends `number` as 8 big-endian bytes. The bytes of numbers >= 0 sort in the
// same order as the numbers.
inline void AppendSorting(std::int64_t number, std::string& bytes) {
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(number >> shift));
  }
}

// Returns the number that AppendSorting wrote as `bytes`.
inline std::int64_t ReadSorting(absl::string_view bytes) {
  std::uint64_t number = 0;
  for (const char c : bytes) {
    number = number << 8 | static_cast<unsigned char>(c);
  }
  return static_cast<std::int64_t>(number);
}

// Reads little-endian values from the front of `bytes`, which must outlive the
// reader. Every method first checks that enough bytes are left; if not, it
// returns false without allocating or reading anything. Not thread-safe.
class ByteReader {
 public:
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
