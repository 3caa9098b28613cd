// Target attention: candidates attend over a user's history.
//
// DIN (Zhou et al. 2018) and TWIN (Chang et al. 2023): each candidate is a
// query, the history's events are keys and values, and the candidate's output
// is the user's interest in it. Unlike DIN's network, the scores are those of
// multi-head attention, and SOFTMAX is the default.
#ifndef ATTENDANT_CORE_ATTENTION_SEQUENCES_RANK_CANDIDATES_H_
#define ATTENDANT_CORE_ATTENTION_SEQUENCES_RANK_CANDIDATES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/attention/approximations/approximation.h"
#include "core/attention/heads/multi_head.h"
#include "core/attention/models/model.h"
#include "core/attention/softmax/score.h"
#include "core/base/interrupt.h"
#include "core/base/views.h"

namespace attendant {

inline constexpr std::int64_t kMaxAttributionCount = 100;

// A view: what it points to must outlive the call.
struct RankInput {
  // Null: candidates, keys and values unprojected, in one head.
  const MultiHeadProjections* heads = nullptr;
  MatrixView candidates;  // [m, query_dim]
  MatrixView keys;        // of the events [n, key_dim]
  MatrixView values;      // of the events [n, value_dim]
  // Times of the events [n], or empty: no event is after `time`. An entry
  // without a time, such as one of a profile, has absl::InfinitePast().
  std::span<const absl::Time> times;
  // Events after this time have weight exactly 0 and need not be finite.
  absl::Time time = absl::InfiniteFuture();
  ScoreKind score_kind = ScoreKind::kScaledDot;  // or kDot, kCosine
  double temperature = 1;                        // finite, > 0
  ActivationKind activation_kind = ActivationKind::kSoftmax;
  // The number of events named for each candidate, in [0,
  // kMaxAttributionCount]; 0 with LinformerOptions.
  std::int64_t attribution_count = 3;
  Approximation approximation;
  Interrupt interrupt;
  AttentionInputNames names = {
      .queries = "candidates", .keys = "history", .values = "history"};
};

struct EventWeight {
  std::int64_t event = 0;  // its row
  double weight = 0;       // mean over heads

  bool operator==(const EventWeight&) const = default;
};

struct RankedInterests {
  // The weighted sums of values, through W_V and W_O [m, output_dim].
  Matrix interests;
  // candidate . interest, under COSINE their cosine, if both have the same
  // dimension; otherwise the mean of the candidate's logits over heads,
  // weighted under SOFTMAX and plain under SIGMOID and NONE. 0 if there is no
  // event to attend to [m].
  std::vector<double> scores;
  // The events of greatest weight, by weight descending, then event ascending;
  // events of weight 0 are left out [m].
  std::vector<std::vector<EventWeight>> attributions;
  std::int64_t future_event_count = 0;  // masked: after `time`
  std::int64_t scored_count = 0;        // pairs not masked, per head
};

// Ranks the candidates; results are in their order. See AttendMultiHead for the
// method. Naming events costs a second pass over the keys.
//
// Thread-safe: holds no state. Memory beyond input and result does not grow
// with the number of events. Exception: under LshAttentionOptions it takes that
// of LshAttention, and up to 32 MiB for HeadJoin's sums and the weights by
// which events are named.
//
// InvalidArgument naming a field of the wire's RankCandidatesRequest, or for
// what AttendMultiHead refuses. Cancelled and DeadlineExceeded from the
// interrupt.
absl::StatusOr<RankedInterests> RankCandidates(const RankInput& input);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SEQUENCES_RANK_CANDIDATES_H_
