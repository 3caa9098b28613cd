// Visits lists from their floats and reports what they hold. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_PASSES_FLOAT_VISIT_H_
#define ATTENDANT_CORE_SHORTLIST_PASSES_FLOAT_VISIT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/attention/softmax/state.h"
#include "core/base/minus_infinity.h"
#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// Order: Visit any number of times, the best lists first. Not thread-safe.
class FloatVisit {
 public:
  // All arguments must outlive the object. `scores` are those of all lists (see
  // ListMeans::ScoreLists). all_eligible: no key is masked, and all are
  // visible.
  FloatVisit(const InvertedLists& lists, const ScanQuery& query,
             std::span<const float> scores, bool all_eligible,
             AttentionState& state)
      : lists_(lists),
        query_(query),
        scores_(scores),
        all_eligible_(all_eligible),
        state_(state) {}

  // Adds the eligible keys of `lists` to the state. Errors as KeyIndex::Scan.
  absl::Status Visit(std::span<const std::int32_t> lists);

  std::span<const std::int32_t> lists() const { return visited_; }
  std::int64_t scored_count() const { return scored_count_; }
  // Logs of the sums of exp(logit) over everything visited, and over everything
  // except the nearer half of the lists visited first; -infinity is a sum of 0.
  double log_sum() const { return log_sum_; }
  double log_farther_sum() const { return log_farther_sum_; }

 private:
  // Visits those of the lists whose score is above farther_score_, or the
  // others.
  absl::Status VisitHalf(std::span<const std::int32_t> lists, bool nearer);

  const InvertedLists& lists_;
  const ScanQuery& query_;
  const std::span<const float> scores_;
  const bool all_eligible_;
  AttentionState& state_;
  float farther_score_ = 0;
  std::vector<std::int32_t> visited_;
  std::int64_t scored_count_ = 0;
  double log_sum_ = kMinusInfinity;
  double log_farther_sum_ = kMinusInfinity;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_PASSES_FLOAT_VISIT_H_
