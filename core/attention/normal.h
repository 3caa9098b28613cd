// Normal random numbers that are functions of a seed and a counter. Internal.
#ifndef ATTENDANT_CORE_ATTENTION_NORMAL_H_
#define ATTENDANT_CORE_ATTENTION_NORMAL_H_

#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/attention/gumbel.h"

namespace attendant {

// A standard normal variable (Box and Muller 1958), finite.
inline float NormalAt(std::uint64_t seed, std::uint64_t counter) {
  // 1 - u is never 0.
  const double u = UniformFrom(RandomBits(seed, 2 * counter));
  const double v = UniformFrom(RandomBits(seed, 2 * counter + 1));
  return static_cast<float>(std::sqrt(-2 * std::log1p(-u)) *
                            std::cos(2 * std::numbers::pi * v));
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_NORMAL_H_
