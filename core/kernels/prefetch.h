// Asks for what lies anywhere in memory, before it is read.
#ifndef ATTENDANT_CORE_KERNELS_PREFETCH_H_
#define ATTENDANT_CORE_KERNELS_PREFETCH_H_

#include <cstddef>
#include <cstdint>

namespace attendant {

// Into the first cache, or the second, which waits for more lines at once.
enum class Cache { kFirst, kSecond };

inline constexpr std::size_t kLineBytes = 64;

// The empty statement counts as an effect: GCC 12 takes a function that does
// no more than prefetch for one without any, and drops the calls of it.
template <Cache kCache = Cache::kFirst>
inline void PrefetchLine(const void* line) {
  __builtin_prefetch(line, 0, kCache == Cache::kFirst ? 3 : 2);
  asm volatile("");
}

// `count` numbers in a row.
template <Cache kCache = Cache::kFirst, typename Number>
inline void PrefetchRow(const Number* numbers, std::int64_t count) {
  constexpr std::int64_t kLine = kLineBytes / sizeof(Number);
  for (std::int64_t i = 0; i < count; i += kLine) {
    PrefetchLine<kCache>(numbers + i);
  }
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_PREFETCH_H_
