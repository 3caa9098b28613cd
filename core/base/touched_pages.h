// Measures the memory of a buffer that is written in order, but not in full.
#ifndef ATTENDANT_CORE_BASE_TOUCHED_PAGES_H_
#define ATTENDANT_CORE_BASE_TOUCHED_PAGES_H_

#include <cstddef>
#include <cstdint>

namespace attendant {

// Counts the bytes from the beginning of the buffer to the end of the last
// write, except whole pages that were never written, which take no memory.
// Copyable. Not thread-safe.
class TouchedPages {
 public:
  TouchedPages() = default;
  // `begin` is the beginning of the buffer. From `huge_begin` on, pages are of
  // 2 MiB, as where PreferHugePages is obeyed; null: no huge pages.
  explicit TouchedPages(const void* begin, const void* huge_begin = nullptr);

  // Records a write of `bytes` bytes at `data`, behind all earlier writes.
  // Returns how many more bytes of memory the buffer takes.
  std::int64_t Write(const void* data, std::size_t bytes);

 private:
  std::uintptr_t end_ = 0;  // end of the last write
  std::uintptr_t huge_begin_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_TOUCHED_PAGES_H_
