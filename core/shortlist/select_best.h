// The greatest of some numbers. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_SELECT_BEST_H_
#define ATTENDANT_CORE_SHORTLIST_SELECT_BEST_H_

#include <cstdint>
#include <span>
#include <vector>

namespace attendant {

// Sets `positions` to those of the `count` greatest numbers, ascending; of
// equal ones the first are taken. No NaN; 1 <= count <= numbers.size(). Reads
// the numbers twice and little more where count is small. Does not allocate
// once `positions` has grown.
void SelectBest(std::span<const float> numbers, std::int64_t count,
                std::vector<std::int32_t>& positions);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SELECT_BEST_H_
