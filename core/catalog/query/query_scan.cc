#include "core/catalog/query/query_scan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/attention/sampling/sampling.h"
#include "core/attention/softmax/log_add.h"
#include "core/base/minus_infinity.h"
#include "core/base/status.h"
#include "core/catalog/query/mass.h"
#include "core/catalog/query/pooled_deviation.h"
#include "core/catalog/query/weigh.h"
#include "core/shortlist/scan/shared_scan.h"

namespace attendant {

// Sums the weights of all rows of a catalog, one head's logits at a time, and
// returns the logs of the sums.
class MeanLogWeights {
 public:
  explicit MeanLogWeights(const Snapshot& snapshot) : snapshot_(snapshot) {
    std::size_t row_count = 0;
    for (const SegmentView& view : snapshot.segments) {
      offsets_.push_back(row_count);
      row_count += static_cast<std::size_t>(view.row_end);
    }
    sums_.assign(row_count, kMinusInfinity);
  }

  // Adds the weight of each candidate in a head.
  absl::Status Add(const std::vector<Candidate>& candidates,
                   const LogPartition& partition, double head_weight,
                   const Interrupt& interrupt) {
    const double log_head_weight = std::log(head_weight);
    return VisitEach(candidates.size(), interrupt, [&](std::size_t i) {
      const Candidate& candidate = candidates[i];
      double& sum = sums_[offsets_[candidate.segment] +
                          static_cast<std::size_t>(candidate.row)];
      sum = LogAdd(sum, log_head_weight + partition.LogWeight(candidate.logit));
    });
  }

  // Returns the rows that at least one head scored, with the logs of their
  // sums.
  absl::StatusOr<Population> Read(const Interrupt& interrupt) const {
    Population population;
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      ATTENDANT_RETURN_IF_ERROR(
          VisitEach(static_cast<std::size_t>(snapshot_.segments[i].row_end),
                    interrupt, [&](std::size_t row) {
                      const double sum = sums_[offsets_[i] + row];
                      if (sum == kMinusInfinity) return;
                      population.rows.push_back({static_cast<std::int32_t>(i),
                                                 static_cast<RowIndex>(row)});
                      population.logits.push_back(AsLogit(sum));
                    }));
    }
    return population;
  }

 private:
  const Snapshot& snapshot_;
  std::vector<std::size_t> offsets_;  // of each segment's first row
  std::vector<double> sums_;
};

QueryScan::QueryScan(const Snapshot& snapshot, const QueryPlan& plan,
                     const Interrupt& interrupt)
    : snapshot_(&snapshot), plan_(&plan), interrupt_(&interrupt) {}

QueryScan::QueryScan(QueryScan&&) noexcept = default;
QueryScan::~QueryScan() = default;

bool QueryScan::done() const {
  return scans_.heads.size() == plan_->heads.size();
}

const PlannedHead& QueryScan::head() const {
  return plan_->shortlist_head ? *plan_->shortlist_head
                               : plan_->heads[scans_.heads.size()];
}

bool QueryScan::IsMasked(std::size_t segment) const {
  const SegmentMask& mask = plan_->masks[segment];
  if (mask.excluded == nullptr && mask.allowed == nullptr) return false;
  const int field = head().field;
  const auto eligible_count = plan_->masks.KnownEligibleCount(segment, field);
  if (!eligible_count) return true;
  // Assumes that all dead rows have keys.
  const SegmentView& view = snapshot_->segments[segment];
  const std::int64_t key_count =
      view.live_key_counts[field] + view.dead_count();
  return static_cast<double>(*eligible_count) <
         kMostlyEligible * static_cast<double>(key_count);
}

Company QueryScan::company() const {
  if (probe_count_ > 0 || plan_->draws_from_catalog()) return Company::kNone;
  const PlannedHead& scanned = head();
  bool every_key = true;
  std::int64_t row_count = 0;
  for (const SegmentView& view : snapshot_->segments) {
    row_count += view.row_end;
  }
  if (!takes_every_key_ && !plan_->exhaustive) {
    for (std::size_t i = 0; i < snapshot_->segments.size(); ++i) {
      const Segment& segment = *snapshot_->segments[i].segment;
      if (segment.IndexOf(scanned.field, scanned.stored_head).kind() ==
          IndexKind::kFlat) {
        continue;
      }
      if (!IsMasked(i)) return Company::kCodes;
      every_key = false;
    }
  }
  const bool shares_products =
      every_key && !scanned.projection &&
      scanned.score_kind != ScoreKind::kAdditive &&
      plan_->pool_scope != WeightScope::kCatalog &&
      kRowsPerEligible * plan_->eligible_count >= row_count;
  return shares_products ? Company::kFloats : Company::kNone;
}

HeadScanTask QueryScan::NextTask() const {
  HeadScanTask task;
  task.plan = plan_;
  task.head = &head();
  task.options.shortlist_count = plan_->shortlist_count;
  task.options.pools = plan_->pool_scope == WeightScope::kCatalog;
  task.options.exhaustive = plan_->exhaustive || takes_every_key_;
  task.options.goals = plan_->goals;
  if (probe_count_ > 0) {
    task.options.goals.recall = 0;
    task.options.goals.probe_count = probe_count_;
  }
  task.options.keeps_all = plan_->draws_from_all_logits();
  task.interrupt = interrupt_;
  return task;
}

// Returns why this scan must be followed by one of every key; empty if it need
// not.
absl::string_view QueryScan::WhyNotEnough(const HeadScan& scan) const {
  if (scan.exact) return "";
  const ScanGoals& goals = plan_->goals;
  if (goals.recall == 1 && !scan.results_exact) {
    return "it can't prove recall 1";
  }
  if (goals.certified && !scan.certified) return "it can't certify the mass";
  if (plan_->must_know_mass &&
      ErrorOf(scan, false).method == MassMethod::kUnknown) {
    return "it does not know the mass";
  }
  if (goals.mass_precision > 0) {
    const PartitionError error = ErrorOf(scan, goals.certified);
    if (error.method == MassMethod::kUnknown)
      return "it does not know the mass";
    if (error.most() > goals.mass_precision) {
      return "it knows the mass less precisely than asked for";
    }
  }
  if (plan_->pool_scope == WeightScope::kCatalog) {
    if (!scan.complete) return "it can't pool what it does not score";
    if (!plan_->only_index &&
        !(RelativeError(scan.pooled_deviation, scan.pooled_value) <=
          plan_->pool_precision)) {
      return "it knows the pooled value less precisely than wanted";
    }
  }
  return "";
}

ScanTrace& QueryScan::Note(const HeadScan& scan, absl::Duration time) {
  scans_.trace.scan_duration += time;
  ScanTrace& trace = scans_.trace.scans.emplace_back();
  trace.head = static_cast<int>(scans_.heads.size());
  trace.index_kind = scan.index_kind;
  trace.exhaustive = plan_->exhaustive || takes_every_key_;
  if (!trace.exhaustive) {
    trace.probe_count =
        probe_count_ > 0 ? probe_count_ : plan_->goals.probe_count;
  }
  trace.scored_count = scan.scored_count;
  trace.visited_list_count = scan.visited_list_count;
  trace.shared_query_count = scan.shared_query_count;
  trace.time = time;
  return trace;
}

absl::Status QueryScan::Take(HeadScan scan, absl::Duration time) {
  ScanTrace& trace = Note(scan, time);
  scans_.scored_count += scan.scored_count;
  scans_.visited_list_count += scan.visited_list_count;
  scans_.shared_query_count =
      std::max(scans_.shared_query_count, scan.shared_query_count);
  if (!takes_every_key_ && !plan_->exhaustive) {
    const absl::string_view reason = WhyNotEnough(scan);
    if (plan_->only_index) {
      // With only_index, what the index finds is the answer.
      if (!reason.empty()) return IndexCannotAnswer(reason);
    } else if (!reason.empty()) {
      trace.not_enough = reason;
      takes_every_key_ = true;
      return absl::OkStatus();
    } else if (FoundTooFew(scan)) {
      trace.not_enough = "it found too few items";
      Widen(scan);
      return absl::OkStatus();
    }
  }
  takes_every_key_ = false;
  wider_count_ = 0;
  probe_count_ = 0;
  if (plan_->draws_from_all_logits() && plan_->heads.size() > 1) {
    if (means_ == nullptr) {
      means_ = std::make_unique<MeanLogWeights>(*snapshot_);
    }
    ATTENDANT_RETURN_IF_ERROR(
        means_->Add(scan.all, LogPartitionOf(scan.partition),
                    plan_->heads[scans_.heads.size()].weight, *interrupt_));
    scan.all = {};
  }
  scans_.heads.push_back(std::move(scan));
  return absl::OkStatus();
}

// Looks further, and finally at every key: the index may have no more to show.
void QueryScan::Widen(const HeadScan& scan) {
  constexpr int kMaxWider = 3;
  constexpr std::int64_t kTimes = 4;
  if (wider_count_++ == kMaxWider) {
    takes_every_key_ = true;
    return;
  }
  probe_count_ = kTimes * std::max({scan.visited_list_count, probe_count_,
                                    plan_->goals.probe_count});
  // An index that visits no lists counts candidates.
  if (probe_count_ == 0) probe_count_ = kTimes * plan_->shortlist_count;
  // More than there is to look at, but still within the wire's range.
  probe_count_ =
      std::min<std::int64_t>(probe_count_, std::numeric_limits<int>::max());
}

bool QueryScan::FoundTooFew(const HeadScan& scan) const {
  return !scan.complete &&
         static_cast<std::int64_t>(scan.shortlist.size()) <
             std::min(plan_->shortlist_count,
                      plan_->masks.EligibleCount(head().field));
}

absl::StatusOr<HeadScans> QueryScan::Found() && {
  if (means_ != nullptr) {
    ATTENDANT_ASSIGN_OR_RETURN(scans_.catalog, means_->Read(*interrupt_));
  } else if (plan_->draws_from_all_logits()) {
    std::vector<Candidate>& all = scans_.heads[0].all;
    scans_.catalog.rows.reserve(all.size());
    scans_.catalog.logits.reserve(all.size());
    ATTENDANT_RETURN_IF_ERROR(
        VisitEach(all.size(), *interrupt_, [&](std::size_t i) {
          scans_.catalog.rows.push_back({all[i].segment, all[i].row});
          scans_.catalog.logits.push_back(all[i].logit);
        }));
    all = {};
  }
  return std::move(scans_);
}

}  // namespace attendant
