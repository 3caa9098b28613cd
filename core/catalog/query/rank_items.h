// Ranks items of a catalog by their attention over a user's history: target
// attention (core/attention/sequences/rank_candidates.h) over a snapshot.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_RANK_ITEMS_H_
#define ATTENDANT_CORE_CATALOG_QUERY_RANK_ITEMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/attention/approximations/approximation.h"
#include "core/attention/models/model.h"
#include "core/attention/softmax/score.h"
#include "core/base/ids.h"
#include "core/base/interrupt.h"
#include "core/catalog/filter/filter.h"
#include "core/catalog/segments/snapshot.h"
#include "core/storage/records/item.h"

namespace attendant {

// Limit of candidates, and of history and profile together.
inline constexpr std::int64_t kMaxSequenceCount = 4096;
// Limit of the interests of all candidates together: the maximum number of
// them, each of the largest dimension of a catalog. Only a model can exceed it.
inline constexpr std::int64_t kMaxInterestBytes =
    kMaxSequenceCount * kMaxDimension * std::int64_t{sizeof(float)};

// An action or a property of a user.
struct HistoryEvent {
  // An item (its key, and its value if it has one), or a vector of the key
  // field's dimension that is its own value.
  std::variant<ItemId, std::vector<float>> what;
  absl::Time time = absl::InfinitePast();  // ignored in a profile
};

// Selects the items of highest logit for a query, as the catalog scores them.
struct CandidateQuery {
  std::vector<float> vector;  // what the field's model takes, if it has one
  // In [1, kMaxSequenceCount], and at most kMaxUnionScores / heads^2.
  std::int64_t candidate_count = 100;
  // At most kMaxIdListCount, including the events that are left out.
  std::vector<ItemId> deny_list = {};
  std::optional<Filter> filter = {};  // unset: all items
  // Leaves out the items of history and profile that can have a weight, that
  // is, not those of events after RankQuery's time.
  bool exclude_events = true;
};

// Mirrors the wire's RankCandidatesRequest, which documents ranges and
// defaults. An unset member means the documented default.
struct RankQuery {
  std::string key_field;  // empty: the first
  std::variant<std::vector<ItemId>, CandidateQuery> candidates;
  std::vector<HistoryEvent> history;
  std::vector<HistoryEvent> profile;
  absl::Time time = absl::InfiniteFuture();
  const AttentionModel* model = nullptr;  // null: vectors are used as they are
  std::optional<ScoreKind> score_kind;
  std::optional<double> temperature;
  std::optional<std::int64_t> result_count;
  std::int64_t attribution_count = 3;
  ActivationKind activation_kind = ActivationKind::kSoftmax;
  Approximation approximation;
};

struct EventAttribution {
  bool profile = false;
  std::int64_t index = 0;  // position in RankQuery's history or profile
  double weight = 0;       // the mean over heads
};

struct RankedItem {
  RowAddress address;
  double score = 0;
  std::vector<float> interest;
  std::vector<EventAttribution> events;
};

struct RankAnswer {
  std::vector<RankedItem> items;  // score descending, id ascending
  std::int64_t future_event_count = 0;
  // Items of history, then of profile; their entries are skipped.
  std::vector<ItemId> unknown_item_ids;
  std::int64_t scored_count = 0;
};

// Returns the number of components of an interest. InvalidArgument if the query
// has no answer.
absl::StatusOr<std::int64_t> InterestDim(const Snapshot& snapshot,
                                         const RankQuery& query);

// Ranks the candidates of `query`. Keys are the items' own, whatever model
// their field has. Under COSINE, an item's key or a projection of norm 0 has
// similarity 0 with everything.
//
// Errors, naming wire fields of RankCandidatesRequest: InvalidArgument (neither
// history nor profile; ids that repeat; a wrong dimension; a non-finite number;
// a vector of norm 0 under COSINE without a model; a vector where values have
// another dimension; a model that does not fit), NotFound (a candidate that is
// not an item with a key in the field), ResourceExhausted (over
// kMaxSequenceCount, kMaxIdListCount or kMaxInterestBytes), Cancelled,
// DeadlineExceeded; for a CandidateQuery also those of Attend. Thread-safe.
absl::StatusOr<RankAnswer> RankItems(const Snapshot& snapshot,
                                     const RankQuery& query,
                                     const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_RANK_ITEMS_H_
