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
#include "core/attention/softmax/score.h"

namespace attendant {

// Implements RankCandidates for an input with an approximation; `problem` is
// the same input as multi-head attention, validated.
absl::StatusOr<RankedInterests> RankApproximately(
    const RankInput& input, const MultiHeadInput& problem);

// Returns the number of events after input.time.
inline std::int64_t FutureEventCount(const RankInput& input) {
  return std::ranges::count_if(
      input.times, [&](absl::Time time) { return time > input.time; });
}

// True if `a` comes before `b` in the order of attributions.
inline bool Better(const EventWeight& a, const EventWeight& b) {
  if (a.weight != b.weight) return a.weight > b.weight;
  return a.event < b.event;
}

// Returns the score of a candidate whose interest has as many components:
// candidate . interest; under COSINE their cosine, or 0 if one has norm 0.
inline double ScoreOf(ScoreKind kind, std::span<const float> candidate,
                      std::span<const float> interest) {
  double dot = 0;
  for (std::size_t d = 0; d < candidate.size(); ++d) {
    dot += double{candidate[d]} * interest[d];
  }
  if (kind != ScoreKind::kCosine) return dot;
  const double norms = Norm(candidate) * Norm(interest);
  return norms > 0 ? std::clamp(dot / norms, -1.0, 1.0) : 0;
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SEQUENCES_RANK_APPROXIMATELY_H_
