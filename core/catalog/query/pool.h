// The values of items, pooled by each head, and what a model makes of them.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_POOL_H_
#define ATTENDANT_CORE_CATALOG_QUERY_POOL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/attention/models/model.h"
#include "core/base/interrupt.h"
#include "core/catalog/query/by_head.h"
#include "core/catalog/query/scan.h"
#include "core/catalog/query/scored_rows.h"
#include "core/catalog/query/weigh.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// The weighted sum of some items' values, by head.
struct HeadPools {
  ByHead<std::vector<double>> sums;  // [head][pooled dim]
  ByHead<double> weight_sums;
  ByHead<std::int64_t> row_counts;  // 0: it pooled nothing
  std::int64_t key_as_value_count = 0;
  bool exact = true;
  // How far the sums are off in norm; empty: not at all.
  ByHead<double> deviations;

  // The mean over the heads that pooled something; over all where weights are
  // not of a softmax.
  std::vector<float> Mean(ActivationKind kind) const;
  // How far that is off, in norm, were all heads off alike.
  double MeanDeviation() const;
};

// Over all of `scored`, into empty pools. Cancelled, DeadlineExceeded.
absl::Status PoolRows(const Snapshot& snapshot, const QueryPlan& plan,
                      const ScoredRows& scored, const Weigher& weigher,
                      const Interrupt& interrupt, HeadPools& pools);

// Over all that scans saw, which pooled; with SOFTMAX.
HeadPools PoolScans(const ByHead<HeadScan>& scans);

// W_V s + b_V w of head h for the sum s of values whose weights sum to w: the
// same as the weighted sum of projected values. s itself without W_V.
std::vector<float> HeadOutput(const MultiHeadProjections& model,
                              const HeadPools& pools, std::size_t head);

// The heads' outputs, joined, through W_O; zeros if no head pooled anything.
std::vector<float> ModelOutput(const MultiHeadProjections& model,
                               const std::vector<std::vector<float>>& outputs,
                               bool pooled_anything);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_POOL_H_
