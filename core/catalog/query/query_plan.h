// A validated query: every default filled in, the query a vector a head, the
// masks bitmaps.
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
#include "core/catalog/query/query_heads.h"
#include "core/catalog/segments/mask.h"
#include "core/catalog/segments/snapshot.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// Below so many keys of a field whose index AUTO chose, unstated recall is
// kRecallOfFewKeys, of shortlists up to kShortCount, and 1 of longer ones; and
// draws are from the softmax itself.
inline constexpr std::int64_t kFewKeyCount = 20000;
// A proof would take a query up to seven times as long (bench/README.md, Small
// catalogs).
inline constexpr double kRecallOfFewKeys = 0.99;
// IvfOptions::neighbour_count: a recall's lists are learned from so many.
inline constexpr std::int64_t kShortCount = 100;

struct QueryPlan {
  // At least one. All of one model, or each with a key field of its own.
  ByHead<PlannedHead> heads;
  // ADDITIVE over an index: by q . k, which finds the shortlist that heads[0]
  // then scores.
  std::optional<PlannedHead> shortlist_head;
  NamedModel model;  // of all heads; null: none
  ScoreKind score_kind = ScoreKind::kDot;
  std::int64_t result_count = 0;
  std::int64_t shortlist_count = 0;
  SelectKind select_kind = SelectKind::kSoft;
  ActivationKind activation_kind = ActivationKind::kSoftmax;
  std::optional<double> min_mass;
  bool with_replacement = false;
  std::int64_t seed = 0;  // of SAMPLE
  WeightScope weight_scope = WeightScope::kShortlist;
  std::optional<WeightScope> pool_scope;  // unset: no pooled value
  bool include_head_weights = false;
  bool names_heads = false;  // the query does, if only one
  // Every eligible key must be scored, from its floats.
  bool exhaustive = false;
  // If not exhaustive: what the scans must know. Where an index can't, every
  // key is scored, unless only the index may answer.
  ScanGoals goals;
  bool must_know_mass = false;  // however imprecisely
  bool only_index = false;
  // Relative error that a value pooled over the catalog may have, unless only
  // the index may answer, which then says what it has.
  double pool_precision = 0;
  Masks masks;
  // Items that some head may attend to.
  std::int64_t eligible_count = 0;
  std::vector<ResolvedBias> biases;
  absl::Time time;  // what biases take for now
  std::vector<ItemId> unknown_example_ids;
  std::int64_t projected_query_count = 0;

  // The field that stands for the query where only one can.
  int field() const { return heads.front().field; }
  bool draws_from_catalog() const {
    return select_kind == SelectKind::kSample &&
           weight_scope == WeightScope::kCatalog;
  }
  // Whether these draws are from every logit, which must be kept. Else they
  // are DrawRows'.
  bool draws_from_all_logits() const {
    return draws_from_catalog() && exhaustive;
  }
};

// FailedPrecondition: scan_mode INDEX, and `reason`.
absl::Status IndexCannotAnswer(absl::string_view reason);

// Errors as Attend. Snapshot and query must outlive the plan.
absl::StatusOr<QueryPlan> PlanQuery(const Snapshot& snapshot,
                                    const AttendQuery& query,
                                    const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_QUERY_PLAN_H_
