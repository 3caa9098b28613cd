// Common parts of drawing lists by their predicted mass. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_MASS_DRAWN_LISTS_H_
#define ATTENDANT_CORE_SHORTLIST_MASS_DRAWN_LISTS_H_

#include <bit>
#include <cstdint>
#include <span>

#include "core/base/random.h"

namespace attendant {

// Lists are drawn in proportion to this power of their predicted mass. It is
// below 1 because otherwise lists that hold more than predicted would get large
// factors.
inline constexpr float kTemper = 0.8f;
// Deviations of a mean of few skewed draws, in place of 1.
inline constexpr double kDrawDeviations = 1.12;

// Returns a number in [0, 1) that depends only on the query.
inline double UniformOf(std::span<const float> query) {
  std::uint64_t state = 0;
  for (const float component : query) {
    state = state * 0x100000001b3u ^ std::bit_cast<std::uint32_t>(component);
  }
  return UniformFrom(SplitMixBits(state, 0));
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_MASS_DRAWN_LISTS_H_
