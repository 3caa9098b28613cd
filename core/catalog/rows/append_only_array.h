// An array that grows without moving its elements.
#ifndef ATTENDANT_CORE_CATALOG_ROWS_APPEND_ONLY_ARRAY_H_
#define ATTENDANT_CORE_CATALOG_ROWS_APPEND_ONLY_ARRAY_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace attendant {

// One writer appends, without locks, while readers use the elements below a
// size() they have read, or below an end published to them otherwise. Chunks
// double in size, so at most half of the memory is unused, and the pages of
// that part are untouched.
template <typename T>
class AppendOnlyArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Writer only. Throws std::bad_alloc and then changes nothing.
  void Append(const T& element) {
    const std::int64_t i = size_.load(std::memory_order_relaxed);
    const Place place = PlaceOf(i);
    if (chunks_[place.chunk] == nullptr) {
      chunks_[place.chunk] =
          std::make_unique_for_overwrite<T[]>(kFirstChunk << place.chunk);
    }
    chunks_[place.chunk][place.offset] = element;
    size_.store(i + 1, std::memory_order_release);
  }

  std::int64_t size() const { return size_.load(std::memory_order_acquire); }

  // i in [0, size()).
  const T& operator[](std::int64_t i) const {
    const Place place = PlaceOf(i);
    return chunks_[place.chunk][place.offset];
  }

  // Returns contiguous elements starting at i: at least one, none at or past
  // `end`. i < end <= size().
  std::span<const T> Run(std::int64_t i, std::int64_t end) const {
    const Place place = PlaceOf(i);
    const std::size_t left = (kFirstChunk << place.chunk) - place.offset;
    return {chunks_[place.chunk].get() + place.offset,
            std::min(left, static_cast<std::size_t>(end - i))};
  }

 private:
  static constexpr std::size_t kFirstChunk = 16;

  struct Place {
    std::size_t chunk;
    std::size_t offset;
  };

  static Place PlaceOf(std::int64_t i) {
    const std::size_t at = static_cast<std::size_t>(i) + kFirstChunk;
    const auto chunk =
        static_cast<std::size_t>(std::bit_width(at) - kFirstWidth);
    return {chunk, at - (kFirstChunk << chunk)};
  }

  static constexpr int kFirstWidth = std::bit_width(kFirstChunk);

  std::atomic<std::int64_t> size_ = 0;
  std::array<std::unique_ptr<T[]>, 40> chunks_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_ROWS_APPEND_ONLY_ARRAY_H_
