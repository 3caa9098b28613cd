// A fixed-size set of rows.
#ifndef ATTENDANT_CORE_BASE_BITMAP_H_
#define ATTENDANT_CORE_BASE_BITMAP_H_

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace attendant {

// One bit per row; every bit is clear at first. A copy takes `size / 8` bytes.
// Not thread-safe while it is written.
class Bitmap {
 public:
  Bitmap() = default;
  explicit Bitmap(std::int64_t size)
      : size_(size), words_(static_cast<std::size_t>((size + 63) / 64)) {}

  std::int64_t size() const { return size_; }
  std::int64_t memory_bytes() const {
    return static_cast<std::int64_t>(words_.size() * sizeof(std::uint64_t));
  }
  bool Test(std::int64_t i) const { return (words_[i >> 6] >> (i & 63)) & 1; }
  void Set(std::int64_t i) { words_[i >> 6] |= std::uint64_t{1} << (i & 63); }
  void Clear(std::int64_t i) {
    words_[i >> 6] &= ~(std::uint64_t{1} << (i & 63));
  }
  // Row i is bit i % 64 of word i / 64. Bits beyond the size are clear and must
  // stay clear.
  std::span<const std::uint64_t> words() const { return words_; }
  std::span<std::uint64_t> words() { return words_; }

  // Calls visit(i) for each i in [begin, end) that is set, ascending.
  template <typename Visit>
  void ForEachSet(std::int64_t begin, std::int64_t end, Visit visit) const {
    for (std::int64_t first = begin & ~std::int64_t{63}; first < end;
         first += 64) {
      std::uint64_t word = words_[first >> 6];
      if (first < begin) word &= ~std::uint64_t{0} << (begin - first);
      if (end - first < 64) word &= (std::uint64_t{1} << (end - first)) - 1;
      for (; word != 0; word &= word - 1) {
        visit(first + std::countr_zero(word));
      }
    }
  }

 private:
  std::int64_t size_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_BITMAP_H_
