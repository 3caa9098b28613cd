// The greatest of some numbers, by the kernels. Thread-safe.
#ifndef ATTENDANT_CORE_KERNELS_SELECT_H_
#define ATTENDANT_CORE_KERNELS_SELECT_H_

#include <cstdint>
#include <span>
#include <vector>

namespace attendant {

// The k-th greatest of numbers, equal ones counted each; 1 <= k <=
// numbers.size(). No NaN. Counts what is above a guess some ten times, thirty
// at most, which is quicker than to move numbers about.
float KthGreatest(std::span<const float> numbers, std::int64_t k);

// A number that at least k numbers are not below, and at most `most` >= k, but
// for equals of the k-th: in far fewer steps than the k-th itself.
float NearKthGreatest(std::span<const float> numbers, std::int64_t k,
                      std::int64_t most);

// Sets `positions` to those of the `count` greatest numbers, the greatest
// first, and of equal ones the one that stands first. No NaN; 1 <= count <=
// numbers.size(). Reads the numbers twice and little more where count is small.
// Does not allocate once `positions` has grown.
void SelectBest(std::span<const float> numbers, std::int64_t count,
                std::vector<std::int32_t>& positions);

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_SELECT_H_
