// Scores the rows of a snapshot for the heads of a plan.
#ifndef ATTENDANT_CORE_CATALOG_SCAN_H_
#define ATTENDANT_CORE_CATALOG_SCAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/state.h"
#include "core/base/interrupt.h"
#include "core/catalog/query_plan.h"
#include "core/catalog/snapshot.h"

namespace attendant {

struct HeadScanOptions {
  std::int64_t shortlist_count = 0;
  bool pools = false;       // pool the value of every row scored
  bool exhaustive = false;  // score every eligible key
  bool keeps_all = false;   // keep what every row scored
};

// What a scan of all segments for one head found.
struct HeadScan {
  SoftmaxPartition partition;        // of all that was scored
  std::vector<Candidate> shortlist;  // sorted
  std::vector<Candidate> all;        // in the order of the scan, if kept
  std::vector<float> pooled_value;   // over all that was scored, if pooled
  std::int64_t scored_count = 0;
  bool complete = true;  // every eligible key was scored
  IndexKind index_kind = IndexKind::kFlat;
  std::int64_t key_as_value_count = 0;  // when pooling
};

// One state through all segments, in their order. Errors of KeyIndex::Scan.
absl::StatusOr<HeadScan> ScanHead(const Snapshot& snapshot,
                                  const QueryPlan& plan,
                                  const PlannedHead& head,
                                  const HeadScanOptions& options,
                                  const Interrupt& interrupt);

// Rows with what every head scores them: -infinity where a row has no key in a
// head's field.
struct ScoredRows {
  std::vector<RowAddress> rows;
  // [head][row]
  std::vector<std::vector<float>> similarities;
  std::vector<std::vector<float>> logits;

  std::size_t size() const { return rows.size(); }
};

// Scores `rows` in all heads of the plan, from their fp32 keys: the same bytes
// as a scan. Errors of KeyIndex::Scan.
absl::StatusOr<ScoredRows> ScoreInHeads(const Snapshot& snapshot,
                                        const QueryPlan& plan,
                                        std::vector<RowAddress> rows,
                                        const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SCAN_H_
