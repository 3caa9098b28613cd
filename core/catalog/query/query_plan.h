// A validated query with all defaults filled in: one query vector per head, and
// masks as bitmaps.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_QUERY_PLAN_H_
#define ATTENDANT_CORE_CATALOG_QUERY_QUERY_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/query/bias.h"
#include "core/catalog/query/by_head.h"
#include "core/catalog/query/crowding.h"
#include "core/catalog/query/query_heads.h"
#include "core/catalog/segments/mask.h"
#include "core/catalog/segments/snapshot.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// With fewer keys than this in a field whose index AUTO chose, the default
// recall is kRecallOfFewKeys for shortlists of up to kShortCount and 1 for
// longer ones, and draws are made from the softmax itself.
inline constexpr std::int64_t kFewKeyCount = 20000;
// Proving the shortlist would make a query up to seven times as slow
// (bench/README.md, Small catalogs).
inline constexpr double kRecallOfFewKeys = 0.99;
// IvfOptions::neighbour_count: the number of neighbours from which the lists
// needed for a recall are learned.
inline constexpr std::int64_t kShortCount = 100;

struct QueryPlan {
  // At least one. Either all heads belong to one model, or each has its own key
  // field.
  ByHead<PlannedHead> heads;
  // For ADDITIVE over an index: the head that finds the shortlist by q . k.
  // heads[0] then scores that shortlist.
  std::optional<PlannedHead> shortlist_head;
  NamedModel model;  // of all heads; null if there is none
  ScoreKind score_kind = ScoreKind::kDot;
  std::int64_t result_count = 0;
  std::int64_t shortlist_count = 0;
  SelectKind select_kind = SelectKind::kSoft;
  ActivationKind activation_kind = ActivationKind::kSoftmax;
  std::optional<double> min_mass;
  std::vector<ResolvedCrowdingLimit> crowding_limits;
  bool with_replacement = false;
  std::int64_t seed = 0;  // for SAMPLE
  WeightScope weight_scope = WeightScope::kShortlist;
  std::optional<WeightScope> pool_scope;  // unset: no pooled value
  bool include_head_weights = false;
  bool names_heads = false;  // the query names its heads, even if only one
  // Every eligible key must be scored from its floats.
  bool exhaustive = false;
  // Unless exhaustive: what the scans must find out. Where an index cannot,
  // every key is scored, unless only the index may answer.
  ScanGoals goals;
  bool must_know_mass = false;  // with any precision
  bool only_index = false;
  // The relative error allowed for a value pooled over the catalog. If only the
  // index may answer, the answer states the error it has instead.
  double pool_precision = 0;
  Masks masks;
  // Items that at least one head may attend to.
  std::int64_t eligible_count = 0;
  std::vector<ResolvedBias> biases;
  absl::Time time;  // the current time for biases
  std::vector<ItemId> unknown_example_ids;
  std::int64_t projected_query_count = 0;

  // Returns the heads' weights in means over them.
  ByHead<double> head_weights() const {
    ByHead<double> weights;
    for (const PlannedHead& head : heads) weights.push_back(head.weight);
    return weights;
  }
  // The field that represents the query where only one is reported.
  int field() const { return heads.front().field; }
  bool draws_from_catalog() const {
    return select_kind == SelectKind::kSample &&
           weight_scope == WeightScope::kCatalog;
  }
  // True if the query draws from every logit, all of which must be kept.
  // Otherwise DrawRows makes its draws from the catalog.
  bool draws_from_all_logits() const {
    return draws_from_catalog() && exhaustive;
  }
};

// FailedPrecondition: scan_mode is INDEX, but the index cannot answer because
// of `reason`.
absl::Status IndexCannotAnswer(absl::string_view reason);

// Returns the plan of a query. Errors as Attend. `snapshot` and `query` must
// outlive the plan.
absl::StatusOr<QueryPlan> PlanQuery(const Snapshot& snapshot,
                                    const AttendQuery& query,
                                    const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_QUERY_PLAN_H_
