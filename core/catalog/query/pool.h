// Pools the values of items in each head, and projects them through a model.
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

// The weighted sums of some items' values, by head.
struct HeadPools {
  ByHead<std::vector<double>> sums;  // [head][pooled dim]
  ByHead<double> weight_sums;
  ByHead<std::int64_t> row_counts;  // 0: the head pooled nothing
  std::int64_t key_as_value_count = 0;
  bool exact = true;
  // Errors of the sums, in norm; empty if there are none.
  ByHead<double> deviations;

  // The mean over the heads that pooled something, by head_weights; over all
  // heads if weights are not of a softmax.
  std::vector<float> Mean(ActivationKind kind,
                          const ByHead<double>& head_weights) const;
  // The error of the mean, in norm, if the errors of all heads were aligned.
  double MeanDeviation(const ByHead<double>& head_weights) const;
};

// Pools all of `scored` into `pools`, which must be empty. Errors: Cancelled,
// DeadlineExceeded.
absl::Status PoolRows(const Snapshot& snapshot, const QueryPlan& plan,
                      const ScoredRows& scored, const Weigher& weigher,
                      const Interrupt& interrupt, HeadPools& pools);

// Pools all rows that `scans` saw. The scans must have pooled, with SOFTMAX.
HeadPools PoolScans(const ByHead<HeadScan>& scans);

// Returns W_V s + b_V w of head h, where s is the sum of values and w the sum
// of their weights: equal to the weighted sum of projected values. Returns s
// itself if the model has no W_V.
std::vector<float> HeadOutput(const MultiHeadProjections& model,
                              const HeadPools& pools, std::size_t head);

// Returns the concatenated outputs of the heads, projected by W_O; zeros if no
// head pooled anything.
std::vector<float> ModelOutput(const MultiHeadProjections& model,
                               const std::vector<std::vector<float>>& outputs,
                               bool pooled_anything);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_POOL_H_
