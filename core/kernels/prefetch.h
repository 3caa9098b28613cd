// Asks for floats that lie anywhere in memory, before they are read.
#ifndef ATTENDANT_CORE_KERNELS_PREFETCH_H_
#define ATTENDANT_CORE_KERNELS_PREFETCH_H_

#include <cstdint>

namespace attendant {

// Into the first cache, or the second, which waits for more lines at once.
enum class Cache { kFirst, kSecond };

template <Cache kCache = Cache::kFirst>
inline void PrefetchFloats(const float* floats, std::int64_t count) {
  constexpr std::int64_t kLineFloats = 16;
  for (std::int64_t i = 0; i < count; i += kLineFloats) {
    __builtin_prefetch(floats + i, 0, kCache == Cache::kFirst ? 3 : 2);
  }
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_PREFETCH_H_
