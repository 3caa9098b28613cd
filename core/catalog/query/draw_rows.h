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
  Slate slate;                   // the indices of its draws are meaningless
  // Total variation distance between the distribution drawn from and the
  // softmax. An upper end that holds for 95 % of queries; 0 if rows were drawn
  // from the softmax.
  double distance = 0;
  std::int64_t scored_count = 0;
};

// Draws rows for a plan with one head that draws from the catalog. `shortlist`
// contains eligible rows with exact logits, which determine their weights, as
// they do for all rows of segments whose index has no groups. Other rows are
// drawn by the weights of KeyGroups. The distribution depends only on the
// query, the snapshot and the shortlist; the draws depend also on the seed and
// the items' ids. Errors as Attend.
absl::StatusOr<DrawnRows> DrawRows(const Snapshot& snapshot,
                                   const QueryPlan& plan,
                                   std::span<const Candidate> shortlist,
                                   const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_DRAW_ROWS_H_
