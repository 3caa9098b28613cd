// RankCandidates with an approximation, and helpers shared with the exact
// method. Internal.
#ifndef ATTENDANT_CORE_ATTENTION_SEQUENCES_RANK_APPROXIMATELY_H_
#define ATTENDANT_CORE_ATTENTION_SEQUENCES_RANK_APPROXIMATELY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "core/attention/heads/multi_head.h"
#include "core/attention/sequences/rank_candidates.h"

namespace attendant {

// Implements RankCandidates for an input with an approximation; `problem` is
// the same input as multi-head attention, validated.
absl::StatusOr<RankedInterests> RankApproximately(
    const RankInput& input, const MultiHeadInput& problem);

// Returns the number of events after input.time.
inline std::int64_t FutureEventCount(const RankInput& input) {
  return std::count_if(input.times.begin(), input.times.end(),
                       [&](absl::Time time) { return time > input.time; });
}

// True if `a` comes before `b` in the order of attributions.
inline bool Better(const EventWeight& a, const EventWeight& b) {
  if (a.weight != b.weight) return a.weight > b.weight;
  return a.event < b.event;
}

inline double Dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t d = 0; d < a.size(); ++d) sum += double{a[d]} * b[d];
  return sum;
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SEQUENCES_RANK_APPROXIMATELY_H_
