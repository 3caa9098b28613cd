#include "core/catalog/query_scan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/catalog/weigh.h"

namespace attendant {

// The mean weights of all rows of a catalog, as logs, from one head's logits at
// a time.
class MeanLogWeights {
 public:
  explicit MeanLogWeights(const Snapshot& snapshot) : snapshot_(snapshot) {
    std::size_t row_count = 0;
    for (const SegmentView& view : snapshot.segments) {
      offsets_.push_back(row_count);
      row_count += static_cast<std::size_t>(view.row_end);
    }
    sums_.assign(row_count, kNothing);
  }

  // Adds the weight of each.
  void Add(const std::vector<Candidate>& candidates,
           const LogPartition& partition) {
    for (const Candidate& candidate : candidates) {
      double& sum = sums_[offsets_[candidate.segment] +
                          static_cast<std::size_t>(candidate.row)];
      sum = LogAdd(sum, partition.LogWeight(candidate.logit));
    }
  }

  // Rows that some head scored, with the logs of their sums.
  Population Read() const {
    Population population;
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      for (RowIndex row = 0; row < snapshot_.segments[i].row_end; ++row) {
        const double sum = sums_[offsets_[i] + static_cast<std::size_t>(row)];
        if (sum == kNothing) continue;
        population.rows.push_back({static_cast<std::int32_t>(i), row});
        population.logits.push_back(static_cast<float>(sum));
      }
    }
    return population;
  }

 private:
  static constexpr double kNothing = -std::numeric_limits<double>::infinity();

  const Snapshot& snapshot_;
  std::vector<std::size_t> offsets_;  // of each segment's rows
  std::vector<double> sums_;
};

bool DrawsFromCatalog(const QueryPlan& plan) {
  return plan.select_kind == SelectKind::kSample &&
         plan.weight_scope == WeightScope::kCatalog;
}

QueryScan::QueryScan(const Snapshot& snapshot, const AttendQuery& query,
                     const QueryPlan& plan, const Interrupt& interrupt)
    : snapshot_(&snapshot),
      query_(&query),
      plan_(&plan),
      interrupt_(&interrupt) {}

QueryScan::QueryScan(QueryScan&&) noexcept = default;
QueryScan::~QueryScan() = default;

bool QueryScan::done() const {
  return scans_.heads.size() == plan_->heads.size();
}

const PlannedHead& QueryScan::head() const {
  return plan_->shortlist_head ? *plan_->shortlist_head
                               : plan_->heads[scans_.heads.size()];
}

HeadScanTask QueryScan::NextTask() const {
  HeadScanTask task;
  task.plan = plan_;
  task.head = &head();
  task.options.shortlist_count = plan_->shortlist_count;
  task.options.pools = plan_->pool_scope == WeightScope::kCatalog;
  task.options.exhaustive = plan_->exhaustive || widens_;
  task.options.keeps_all = DrawsFromCatalog(*plan_);
  task.interrupt = interrupt_;
  return task;
}

void QueryScan::Take(HeadScan scan) {
  scans_.scored_count += scan.scored_count;
  scans_.visited_list_count += scan.visited_list_count;
  scans_.shared_query_count =
      std::max(scans_.shared_query_count, scan.shared_query_count);
  const std::int64_t wanted = std::min(
      plan_->shortlist_count, plan_->masks.EligibleCount(head().field));
  widens_ = !widens_ && !scan.complete &&
            query_->scan_mode != ScanMode::kIndex &&
            scan.partition.count < wanted;
  if (widens_) return;
  if (DrawsFromCatalog(*plan_) && plan_->heads.size() > 1) {
    if (means_ == nullptr)
      means_ = std::make_unique<MeanLogWeights>(*snapshot_);
    means_->Add(scan.all, LogPartitionOf(scan.partition));
    scan.all = {};
  }
  scans_.heads.push_back(std::move(scan));
}

HeadScans QueryScan::Found() && {
  if (means_ != nullptr) {
    scans_.catalog = means_->Read();
  } else if (DrawsFromCatalog(*plan_)) {
    std::vector<Candidate>& all = scans_.heads[0].all;
    scans_.catalog.rows.reserve(all.size());
    scans_.catalog.logits.reserve(all.size());
    for (const Candidate& candidate : all) {
      scans_.catalog.rows.push_back({candidate.segment, candidate.row});
      scans_.catalog.logits.push_back(candidate.logit);
    }
    all = {};
  }
  return std::move(scans_);
}

}  // namespace attendant
