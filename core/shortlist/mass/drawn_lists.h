// What draws of lists, by what they are predicted to hold, have in common.
// Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_MASS_DRAWN_LISTS_H_
#define ATTENDANT_CORE_SHORTLIST_MASS_DRAWN_LISTS_H_

#include <bit>
#include <cstdint>
#include <span>

#include "core/base/random.h"

namespace attendant {

// The power of what a list is predicted to hold that it is drawn by: below 1,
// as lists that hold more than predicted would else come with great factors.
inline constexpr float kTemper = 0.8f;
// Deviations of a mean of few and skewed draws, in place of 1.
inline constexpr double kDrawDeviations = 1.12;

// In [0, 1), and a function of the query alone.
inline double UniformOf(std::span<const float> query) {
  std::uint64_t state = 0;
  for (const float component : query) {
    state = state * 0x100000001b3u ^ std::bit_cast<std::uint32_t>(component);
  }
  return UniformFrom(SplitMixBits(state, 0));
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_MASS_DRAWN_LISTS_H_
