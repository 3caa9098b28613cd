#include "core/catalog/attend.h"

#include <algorithm>
#include <cmath>

#include "core/attention/state.h"
#include "core/base/status.h"
#include "core/catalog/query_plan.h"

namespace attendant {
namespace {

// Values of a segment, counting the rows whose key stands in for a value.
class CountingValues : public ValueSource {
 public:
  CountingValues(const RowTable* rows, std::int64_t* missing_count)
      : rows_(rows), missing_count_(missing_count) {}

  const float* ValueOf(RowIndex row) const override {
    const float* value = rows_->ValueOf(row);
    if (value == nullptr) ++*missing_count_;
    return value;
  }

 private:
  const RowTable* rows_;
  std::int64_t* missing_count_;
};

// Dimension of what is pooled: values, or the keys in their place.
std::int64_t PooledDim(const CatalogSchema& schema, int field) {
  return schema.value_dim > 0 ? schema.value_dim : schema.key_fields[field].dim;
}

struct ScanOutcome {
  std::int64_t scored_count = 0;
  bool complete = true;
  IndexKind index_kind = IndexKind::kFlat;
  std::int64_t key_as_value_count = 0;
};

absl::StatusOr<ScanOutcome> ScanSegments(const Snapshot& snapshot,
                                         const QueryPlan& plan, bool exhaustive,
                                         const Interrupt& interrupt,
                                         AttentionState& state) {
  ScanOutcome outcome;
  for (std::size_t i = 0; i < snapshot.segments.size(); ++i) {
    const SegmentView& view = snapshot.segments[i];
    const KeyIndex& index = *view.segment->indexes[plan.field];
    const CountingValues values(view.segment->rows.get(),
                                &outcome.key_as_value_count);
    ScanQuery scan;
    scan.query = plan.vector;
    scan.score_kind = plan.score_kind;
    scan.logit_factor = plan.logit_factor;
    scan.segment = static_cast<std::int32_t>(i);
    scan.row_end = view.row_end;
    scan.excluded = plan.masks[i].excluded;
    scan.allowed = plan.masks[i].allowed.get();
    scan.values = &values;
    scan.exhaustive = exhaustive;
    scan.interrupt = &interrupt;
    ATTENDANT_ASSIGN_OR_RETURN(const ScanStats stats, index.Scan(scan, state));
    outcome.scored_count += stats.scored_count;
    outcome.complete &= stats.complete;
    if (!exhaustive && index.kind() == IndexKind::kIvf) {
      outcome.index_kind = IndexKind::kIvf;
    }
  }
  return outcome;
}

// log sum exp of the first `count` logits, which are sorted descending. count
// >= 1.
double LogSumExp(const std::vector<Candidate>& sorted, std::int64_t count) {
  const double max = sorted.front().logit;
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += std::exp(sorted[i].logit - max);
  }
  return max + std::log(sum);
}

Mass ExactMass(double value) {
  // Rounding may carry a sum of weights past 1.
  value = std::min(value, 1.0);
  return {MassMethod::kExact, value, value, value};
}

// The weighted sum of the values of the first `count` candidates, weights
// normalised over them. count >= 1.
PooledValue Pool(const Snapshot& snapshot, int field,
                 const std::vector<Candidate>& sorted, std::int64_t count) {
  PooledValue pooled;
  std::vector<double> sum(PooledDim(*snapshot.schema, field));
  const double log_partition = LogSumExp(sorted, count);
  for (std::int64_t i = 0; i < count; ++i) {
    const Candidate& candidate = sorted[i];
    const Segment& segment = *snapshot.segments[candidate.segment].segment;
    const float* value = segment.rows->ValueOf(candidate.row);
    if (value == nullptr) {
      value = segment.indexes[field]->Key(candidate.row).data();
      ++pooled.key_as_value_count;
    }
    // One item's weight is 1 whatever rounding says: a lookup is exact.
    const double weight =
        count == 1 ? 1 : std::exp(candidate.logit - log_partition);
    for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += weight * value[d];
  }
  pooled.values.assign(sum.begin(), sum.end());
  return pooled;
}

}  // namespace

absl::StatusOr<AttendAnswer> Attend(const Snapshot& snapshot,
                                    const AttendQuery& query,
                                    const Interrupt& interrupt) {
  ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
  ATTENDANT_ASSIGN_OR_RETURN(QueryPlan plan,
                             PlanQuery(snapshot, query, interrupt));

  const std::int64_t pooled_dim = PooledDim(*snapshot.schema, plan.field);
  const bool pools_all = plan.pool_scope == WeightScope::kCatalog;
  AttentionState state(plan.shortlist_count, &snapshot,
                       pools_all ? pooled_dim : 0);
  ATTENDANT_ASSIGN_OR_RETURN(
      ScanOutcome scan,
      ScanSegments(snapshot, plan, plan.exhaustive, interrupt, state));
  std::vector<Candidate> sorted = state.top().Sorted();
  const auto wanted = std::min(plan.shortlist_count, plan.eligible_count);
  if (!scan.complete && static_cast<std::int64_t>(sorted.size()) < wanted &&
      query.scan_mode != ScanMode::kIndex) {
    // The lists visited hold too few eligible items: score every key.
    state = AttentionState(plan.shortlist_count, &snapshot);
    ATTENDANT_ASSIGN_OR_RETURN(
        scan, ScanSegments(snapshot, plan, true, interrupt, state));
    sorted = state.top().Sorted();
  }
  const auto shortlist_count = static_cast<std::int64_t>(sorted.size());
  const auto returned_count = std::min(plan.result_count, shortlist_count);

  AttendAnswer answer;
  answer.weight_scope = plan.weight_scope;
  answer.unknown_example_ids = std::move(plan.unknown_example_ids);
  answer.temperature = plan.temperature;
  answer.score_kind = plan.score_kind;
  answer.key_field = plan.field;
  answer.scored_count = scan.scored_count;
  answer.eligible_count = plan.eligible_count;
  answer.complete = scan.complete;
  answer.index_kind = scan.index_kind;

  if (scan.complete) {
    answer.log_partition = state.partition().LogPartition();
    answer.entropy = state.partition().Entropy();
    answer.effective_item_count = state.partition().EffectiveCount();
    answer.shortlist_mass = answer.returned_mass = ExactMass(0);
  }
  if (shortlist_count > 0) {
    const double shortlist_log = LogSumExp(sorted, shortlist_count);
    const double returned_log = LogSumExp(sorted, returned_count);
    double scope_log = shortlist_log;
    if (plan.weight_scope == WeightScope::kReturned) scope_log = returned_log;
    if (plan.weight_scope == WeightScope::kCatalog) {
      scope_log = *answer.log_partition;
    }
    if (scan.complete) {
      answer.shortlist_mass =
          ExactMass(std::exp(shortlist_log - *answer.log_partition));
      answer.returned_mass =
          ExactMass(std::exp(returned_log - *answer.log_partition));
    }
    answer.items.reserve(returned_count);
    for (std::int64_t i = 0; i < returned_count; ++i) {
      const Candidate& candidate = sorted[i];
      const double weight = plan.select_kind == SelectKind::kHard
                                ? 1
                                : std::exp(candidate.logit - scope_log);
      answer.items.push_back({{candidate.segment, candidate.row},
                              std::min(weight, 1.0),
                              candidate.logit,
                              candidate.similarity});
    }
  }
  if (plan.pool_scope) {
    PooledValue pooled;
    if (pools_all) {
      pooled.values = state.PooledValue();
      pooled.key_as_value_count = scan.key_as_value_count;
    } else if (shortlist_count > 0) {
      pooled =
          Pool(snapshot, plan.field, sorted,
               plan.pool_scope == WeightScope::kReturned ? returned_count
                                                         : shortlist_count);
    } else {
      pooled.values.resize(pooled_dim);
    }
    pooled.scope = *plan.pool_scope;
    answer.pooled_value = std::move(pooled);
  }
  return answer;
}

}  // namespace attendant
