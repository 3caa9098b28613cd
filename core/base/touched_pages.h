// What a buffer takes of memory that is written in order, and not all of it.
#ifndef ATTENDANT_CORE_BASE_TOUCHED_PAGES_H_
#define ATTENDANT_CORE_BASE_TOUCHED_PAGES_H_

#include <cstddef>
#include <cstdint>

namespace attendant {

// Counts the bytes from where the buffer begins to the end of what was last
// written, but for whole pages that nothing was written to: those take none.
// Copyable. Not thread-safe.
class TouchedPages {
 public:
  TouchedPages() = default;
  // begin: the buffer's. Pages are of 2 MiB from huge_begin on, as where
  // PreferHugePages is obeyed; null: nowhere.
  explicit TouchedPages(const void* begin, const void* huge_begin = nullptr);

  // Of `bytes` bytes at `data`, behind all that was written before. Returns how
  // many bytes more that takes.
  std::int64_t Write(const void* data, std::size_t bytes);

 private:
  std::uintptr_t end_ = 0;  // of what was written
  std::uintptr_t huge_begin_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_TOUCHED_PAGES_H_
