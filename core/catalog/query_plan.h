// A validated query: every default filled in, the query a vector, the masks
// bitmaps.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_PLAN_H_
#define ATTENDANT_CORE_CATALOG_QUERY_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/catalog/attend.h"
#include "core/catalog/mask.h"
#include "core/catalog/snapshot.h"

namespace attendant {

struct QueryPlan {
  int field = 0;
  ScoreKind score_kind = ScoreKind::kDot;
  double temperature = 1;
  double logit_factor = 1;
  std::int64_t result_count = 0;
  std::int64_t shortlist_count = 0;
  SelectKind select_kind = SelectKind::kSoft;
  WeightScope weight_scope = WeightScope::kShortlist;
  std::optional<WeightScope> pool_scope;  // unset: no pooled value
  // Every eligible key must be scored.
  bool exhaustive = false;
  std::vector<float> vector;  // of norm 1 for COSINE
  Masks masks;
  std::int64_t eligible_count = 0;
  std::vector<ItemId> unknown_example_ids;
};

// Errors as Attend. The snapshot must outlive the plan.
absl::StatusOr<QueryPlan> PlanQuery(const Snapshot& snapshot,
                                    const AttendQuery& query,
                                    const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_PLAN_H_
