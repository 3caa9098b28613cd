// Selects the greatest of some numbers, by the kernels. Thread-safe.
#ifndef ATTENDANT_CORE_KERNELS_SELECT_H_
#define ATTENDANT_CORE_KERNELS_SELECT_H_

#include <cstdint>
#include <span>
#include <vector>

namespace attendant {

// Returns the k-th greatest of the numbers, counting equal ones separately; 1
// <= k <= numbers.size(). No NaN. Counts the numbers above a guess some ten
// times, at most thirty, which is faster than moving numbers.
float KthGreatest(std::span<const float> numbers, std::int64_t k);

// Returns a threshold that at least k numbers reach, and at most `most` >= k,
// not counting further equals of the k-th greatest. Takes far fewer steps than
// KthGreatest.
float NearKthGreatest(std::span<const float> numbers, std::int64_t k,
                      std::int64_t most);

// Sets `positions` to those of the `count` greatest numbers, the greatest
// first; of equal numbers the first comes first. No NaN; 1 <= count <=
// numbers.size(). Reads the numbers twice and little more if count is small.
// Does not allocate once `positions` has grown.
void SelectBest(std::span<const float> numbers, std::int64_t count,
                std::vector<std::int32_t>& positions);

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_SELECT_H_
