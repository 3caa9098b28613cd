// Maps floats to integers of the same order.
#ifndef ATTENDANT_CORE_KERNELS_FLOAT_ORDER_H_
#define ATTENDANT_CORE_KERNELS_FLOAT_ORDER_H_

#include <bit>
#include <cstdint>

namespace attendant {

// Returns an integer that ascends as `number` does, with -0 before 0.
inline std::uint32_t OrderOf(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000;
}

// Returns the number whose OrderOf is `order`.
inline float FloatOf(std::uint32_t order) {
  return std::bit_cast<float>((order >> 31) != 0 ? order & 0x7fffffff : ~order);
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_FLOAT_ORDER_H_
