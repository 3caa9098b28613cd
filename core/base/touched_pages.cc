#include "core/base/touched_pages.h"

#include <unistd.h>

#include <algorithm>
#include <limits>

namespace attendant {
namespace {

constexpr std::uintptr_t kHugePageBytes = std::uintptr_t{2} << 20;

std::uintptr_t PageBytes() {
  static const auto bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::uintptr_t RoundUp(std::uintptr_t address, std::uintptr_t page_bytes) {
  return (address + page_bytes - 1) / page_bytes * page_bytes;
}

// Returns the bytes of the whole pages in [begin, end).
std::uintptr_t WholePageBytes(std::uintptr_t begin, std::uintptr_t end,
                              std::uintptr_t page_bytes) {
  if (begin >= end) return 0;
  const std::uintptr_t first = RoundUp(begin, page_bytes);
  const std::uintptr_t last = end / page_bytes * page_bytes;
  return first < last ? last - first : 0;
}

}  // namespace

TouchedPages::TouchedPages(const void* begin, const void* huge_begin)
    : end_(reinterpret_cast<std::uintptr_t>(begin)),
      huge_begin_(huge_begin == nullptr
                      ? std::numeric_limits<std::uintptr_t>::max()
                      : RoundUp(reinterpret_cast<std::uintptr_t>(huge_begin),
                                kHugePageBytes)) {}

std::int64_t TouchedPages::Write(const void* data, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t untouched =
      WholePageBytes(end_, std::min(begin, huge_begin_), PageBytes()) +
      WholePageBytes(std::max(end_, huge_begin_), begin, kHugePageBytes);
  const std::uintptr_t end = begin + bytes;
  const std::uintptr_t more = end - end_ - untouched;
  end_ = end;
  return static_cast<std::int64_t>(more);
}

}  // namespace attendant
