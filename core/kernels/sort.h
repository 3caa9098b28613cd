// Sorting. Few numbers are ranked by comparing each with each; many are sorted
// by Highway's vectorised quicksort (Wassenberg et al. 2022), which asks the
// kernel for random bits at each call, however few they are: a third of a
// microsecond.
#ifndef ATTENDANT_CORE_KERNELS_SORT_H_
#define ATTENDANT_CORE_KERNELS_SORT_H_

#include <cstdint>
#include <span>
#include <vector>

namespace attendant {

// Thread-safe; the first sort of a thread allocates.
void SortAscending(std::span<std::uint64_t> numbers);

// Sets `places` to those of the numbers, none of them NaN, the greatest first,
// and of equal ones the one that stands first. Thread-safe. Does not allocate
// once `places` has grown, but for the first call of a thread.
void SortDescending(std::span<const float> numbers,
                    std::vector<std::int32_t>& places);

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_SORT_H_
