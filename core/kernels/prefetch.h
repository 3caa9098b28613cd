// Asks for what lies anywhere in memory, before it is read.
#ifndef ATTENDANT_CORE_KERNELS_PREFETCH_H_
#define ATTENDANT_CORE_KERNELS_PREFETCH_H_

#include <cstdint>

namespace attendant {

// Into the second cache, which waits for more lines at once than the first: on
// a Zen 4 rows of 512 bytes come from anywhere at 17 GB/s in place of 8. The
// empty statement counts as an effect: GCC 12 takes a function that does no
// more than prefetch for one without any, and drops the calls of it.
inline void PrefetchLine(const void* line) {
  constexpr int kSecondCache = 2;
  __builtin_prefetch(line, 0, kSecondCache);
  asm volatile("");
}

// `count` numbers in a row.
template <typename Number>
inline void PrefetchRow(const Number* numbers, std::int64_t count) {
  constexpr std::int64_t kLineNumbers = 64 / sizeof(Number);
  for (std::int64_t i = 0; i < count; i += kLineNumbers) {
    PrefetchLine(numbers + i);
  }
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_PREFETCH_H_
