// Ascending order of whole numbers, by Highway's vectorised quicksort
// (Wassenberg et al. 2022): what is to be sorted by something else goes into a
// number's high bits, and where it stood into its low ones.
#ifndef ATTENDANT_CORE_KERNELS_SORT_H_
#define ATTENDANT_CORE_KERNELS_SORT_H_

#include <bit>
#include <cstdint>
#include <span>

namespace attendant {

// Thread-safe; the first sort of a thread allocates.
void SortAscending(std::span<std::uint64_t> numbers);

// Whole numbers that ascend as floats, none of them NaN, descend; both zeros
// are one.
inline std::uint32_t DescendingOrder(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number + 0.0f);
  return (bits >> 31) != 0 ? bits : ~(bits | 0x80000000);
}

// One that sorts by the number, the greatest first, and then by place.
inline std::uint64_t DescendingKey(float number, std::uint32_t place) {
  return std::uint64_t{DescendingOrder(number)} << 32 | place;
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_SORT_H_
