// Draws rows of a snapshot in proportion to their attention without scoring
// every key.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_DRAW_ROWS_H_
#define ATTENDANT_CORE_CATALOG_QUERY_DRAW_ROWS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/sampling/sampling.h"
#include "core/attention/softmax/top_k.h"
#include "core/base/interrupt.h"
#include "core/catalog/query/query_plan.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

struct DrawnRows {
  std::vector<RowAddress> rows;  // in the order of draws
  Slate slate;                   // whose draws' indices mean nothing
  // In total variation, between what was drawn from and the softmax: 95 % of
  // queries are no farther. 0 if it was the softmax.
  double distance = 0;
  std::int64_t scored_count = 0;
};

// Of a plan with one head that draws from the catalog. `shortlist` are eligible
// rows with exact logits, which are drawn by these; so are all rows of segments
// whose index knows of no groups. Other rows are drawn by KeyGroups' weights.
// What is drawn from depends on the query, the snapshot and the shortlist
// alone; the draws on the seed and the items' ids besides. Errors as Attend.
absl::StatusOr<DrawnRows> DrawRows(const Snapshot& snapshot,
                                   const QueryPlan& plan,
                                   std::span<const Candidate> shortlist,
                                   const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_DRAW_ROWS_H_
