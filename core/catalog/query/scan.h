// Scores the rows of a snapshot for heads of queries. Heads that use the same
// index share passes.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_SCAN_H_
#define ATTENDANT_CORE_CATALOG_QUERY_SCAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/softmax/state.h"
#include "core/base/interrupt.h"
#include "core/base/minus_infinity.h"
#include "core/catalog/query/query_plan.h"
#include "core/catalog/segments/snapshot.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

struct HeadScanOptions {
  std::int64_t shortlist_count = 0;
  bool pools = false;       // pool the value of every row scored
  bool exhaustive = false;  // score every eligible key, from its floats
  ScanGoals goals;          // if not exhaustive
  bool keeps_all = false;   // keep the score of every row
};

// The result of a scan of all segments for one head.
struct HeadScan {
  SoftmaxPartition partition;        // of everything scored or guessed
  SoftmaxPartition unkept;           // the part of it not scored from floats
  std::vector<Candidate> shortlist;  // sorted
  std::vector<Candidate> all;        // in the order of the scan, if kept
  std::vector<float> pooled_value;   // over everything scored, if pooled
  // False if some values were pooled from codes. The value then has an error of
  // pooled_deviation, in norm (see PooledDeviation).
  bool pooled_exactly = true;
  double pooled_deviation = 0;
  std::int64_t scored_count = 0;
  std::int64_t visited_list_count = 0;
  // As in ScanStats, for all segments together; bounds only if certified.
  bool complete = true;
  std::optional<FarKeys> far = std::nullopt;
  bool exact = true;
  bool results_exact = true;
  bool knows_mass = true;
  double log_variance = kMinusInfinity;
  double log_drawn_variance = kMinusInfinity;
  bool certified = true;
  double log_lower = kMinusInfinity;
  double log_upper = kMinusInfinity;
  IndexKind index_kind = IndexKind::kFlat;
  std::int64_t key_as_value_count = 0;  // when pooling
  int shared_query_count = 1;           // scans in the pass, including this one
};

// One head of one query. The objects it points to must outlive the scan.
struct HeadScanTask {
  const QueryPlan* plan = nullptr;
  const PlannedHead* head = nullptr;
  HeadScanOptions options;
  const Interrupt* interrupt = nullptr;
  absl::StatusOr<HeadScan> scan = HeadScan();  // set by ScanHeads
};

// Accumulates one state per task over all segments, in their order. A task that
// fails, with an error of KeyIndex::Scan, does not affect the others.
void ScanHeads(const Snapshot& snapshot, std::span<HeadScanTask> tasks);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_SCAN_H_
