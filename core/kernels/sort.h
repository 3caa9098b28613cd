// Sorting. Ranks few numbers by comparing each with each; sorts many by
// Highway's vectorised quicksort (Wassenberg et al. 2022), which asks the
// operating system's kernel for random bits at every call, however small: a
// third of a microsecond.
#ifndef ATTENDANT_CORE_KERNELS_SORT_H_
#define ATTENDANT_CORE_KERNELS_SORT_H_

#include <cstdint>
#include <span>
#include <vector>

namespace attendant {

// Thread-safe; a thread's first sort allocates.
void SortAscending(std::span<std::uint64_t> numbers);

// Sets `places` to the positions of the numbers, the greatest first; of equal
// numbers the first comes first. No NaN. Thread-safe. Does not allocate once
// `places` has grown, except in a thread's first call.
void SortDescending(std::span<const float> numbers,
                    std::vector<std::int32_t>& places);

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_SORT_H_
