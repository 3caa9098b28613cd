#include "core/shortlist/passes/float_visit.h"

#include <cmath>

#include "core/attention/softmax/log_add.h"
#include "core/base/status.h"
#include "core/shortlist/mass/unscored_mass.h"
#include "core/shortlist/scan/row_scan.h"

namespace attendant {
namespace {

// Log of SumAdded.
double LogAdded(const SoftmaxPartition& before, const SoftmaxPartition& after) {
  return after.max + std::log(std::max(0.0, SumAdded(before, after)));
}

}  // namespace

absl::Status FloatVisit::Visit(std::span<const std::int32_t> lists) {
  if (lists.empty()) return absl::OkStatus();
  if (visited_.empty()) farther_score_ = FartherScore(scores_, lists);
  visited_.insert(visited_.end(), lists.begin(), lists.end());
  ATTENDANT_RETURN_IF_ERROR(VisitHalf(lists, true));
  return VisitHalf(lists, false);
}

absl::Status FloatVisit::VisitHalf(std::span<const std::int32_t> lists,
                                   bool nearer) {
  const SoftmaxPartition before = state_.partition();
  RowScan scan(query_, state_);
  ATTENDANT_RETURN_IF_ERROR(scan.Start());
  for (const std::int32_t list : lists) {
    const auto l = static_cast<std::size_t>(list);
    if ((scores_[l] > farther_score_) != nearer) continue;
    const std::int64_t begin = lists_.offsets[l];
    const std::int64_t count = lists_.offsets[l + 1] - begin;
    ATTENDANT_RETURN_IF_ERROR(
        scan.Scan({.keys = lists_.keys.runs() + begin * lists_.dim,
                   .inverse_norms = lists_.inverse_norms.data() + begin,
                   .rows = lists_.rows.data() + begin,
                   .count = count},
                  all_eligible_));
  }
  ATTENDANT_RETURN_IF_ERROR(scan.Finish());
  scored_count_ += scan.scored_count();
  const double log_added = LogAdded(before, state_.partition());
  log_sum_ = LogAdd(log_sum_, log_added);
  if (!nearer) log_farther_sum_ = LogAdd(log_farther_sum_, log_added);
  return absl::OkStatus();
}

}  // namespace attendant
