// Rows with their scores in every head.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_SCORED_ROWS_H_
#define ATTENDANT_CORE_CATALOG_QUERY_SCORED_ROWS_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/softmax/top_k.h"
#include "core/base/interrupt.h"
#include "core/catalog/query/by_head.h"
#include "core/catalog/query/query_plan.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// Rows with their scores in every head; -infinity where a row has no key in a
// head's field.
struct ScoredRows {
  std::vector<RowAddress> rows;
  // [head][row]
  ByHead<std::vector<float>> similarities;
  ByHead<std::vector<float>> logits;

  std::size_t size() const { return rows.size(); }
};

// Scores `rows` in all heads of the plan, from their fp32 keys. The scores have
// the same bytes as those of a scan. Errors of KeyIndex::Scan.
absl::StatusOr<ScoredRows> ScoreInHeads(const Snapshot& snapshot,
                                        const QueryPlan& plan,
                                        std::vector<RowAddress> rows,
                                        const Interrupt& interrupt);

// Returns the candidates of the only head, in their order.
ScoredRows FromCandidates(const std::vector<Candidate>& candidates);

// Returns the first `count` rows.
ScoredRows Prefix(const ScoredRows& scored, std::size_t count);

// Returns the rows at `positions`, in that order.
ScoredRows Pick(const ScoredRows& scored,
                const std::vector<std::size_t>& positions);

// Returns the rows without duplicates.
ScoredRows Distinct(const ScoredRows& scored);

// Returns the rows ordered by (rank descending, id ascending); ranks
// [scored.size()].
ScoredRows SortedBy(const std::vector<double>& ranks, const Snapshot& snapshot,
                    const ScoredRows& scored);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_SCORED_ROWS_H_
