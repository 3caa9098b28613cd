#include "core/catalog/query/scan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/attention/softmax/log_add.h"
#include "core/catalog/query/pooled_deviation.h"
#include "core/catalog/query/segment_query.h"
#include "core/catalog/query/weigh.h"
#include "core/kernels/kernels.h"
#include "core/shortlist/scan/eligible_rows.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {
namespace {

// Values of a segment. A row without a value has its key as value; these are
// counted.
class RowValues : public ValueSource {
 public:
  // For rows that are found by `scanned`, an index of the field.
  RowValues(const Segment& segment, int field, const KeyIndex& scanned,
            std::int64_t* missing_count)
      : rows_(*segment.rows),
        keys_(*segment.indexes[field]),
        scans_keys_(&keys_ == &scanned),
        missing_count_(missing_count) {}

  const float* ValueOf(RowIndex row) const override {
    const float* value = rows_.ValueOf(row);
    if (value != nullptr) return value;
    ++*missing_count_;
    return keys_.Key(row).data();
  }
  bool PoolsKeys() const override {
    return scans_keys_ && rows_.value_count() == 0;
  }

 private:
  const RowTable& rows_;
  const KeyIndex& keys_;
  const bool scans_keys_;
  std::int64_t* missing_count_;
};

// Counts the rows visible to a query whose keys are pooled as values.
std::int64_t CountKeysAsValues(const RowTable& rows, const KeyIndex& keys,
                               const ScanQuery& query) {
  const EligibleRows eligible(query);
  std::int64_t count = 0;
  for (std::int64_t w = 0; 64 * w < query.row_end; ++w) {
    std::uint64_t keyed = keys.Keyed(w, eligible.Word(w));
    for (; keyed != 0; keyed &= keyed - 1) {
      const std::int64_t row = 64 * w + std::countr_zero(keyed);
      if (rows.ValueOf(static_cast<RowIndex>(row)) == nullptr) ++count;
    }
  }
  return count;
}

// A task in progress through the segments.
class Scanner {
 public:
  Scanner(const Snapshot& snapshot, HeadScanTask& task)
      : snapshot_(snapshot),
        task_(task),
        state_(KeepCount(task), &snapshot,
               task.options.pools ? snapshot.schema->PooledDim(task.head->field)
                                  : 0),
        carries_(CountInLists(snapshot, *task.head) > 1) {}
  Scanner(const Scanner&) = delete;
  Scanner& operator=(const Scanner&) = delete;

  bool failed() const { return !status_.ok(); }
  const KeyIndex& index() const { return *index_; }

  // Prepares the query of segment i.
  void Enter(std::size_t i) {
    const PlannedHead& head = *task_.head;
    const Segment& segment = *snapshot_.segments[i].segment;
    index_ = &segment.IndexOf(head.field, head.stored_head);
    segment_ = &segment;
    key_count_before_ = scan_.key_as_value_count;
    values_.emplace(segment, head.field, *index_, &scan_.key_as_value_count);
    query_.emplace(snapshot_, *task_.plan, head, i, *task_.interrupt);
    query_->scan.values = &*values_;
    query_->scan.exhaustive = task_.options.exhaustive;
    query_->scan.goals = task_.options.goals;
    before_ = state_.partition();
  }

  ScanTask SegmentTask() {
    return {&query_->scan, &state_, carries_ ? &carry_ : nullptr};
  }

  // Takes the result of the segment's index, from a pass of `shared_count`.
  void Absorb(const absl::StatusOr<ScanStats>& stats,
              std::size_t shared_count) {
    if (!stats.ok()) {
      status_ = InQueryOf(*task_.head, stats.status());
      return;
    }
    scan_.scored_count += stats->scored_count;
    scan_.visited_list_count += stats->visited_list_count;
    MergeKnowledge(*stats);
    if (stats->pooled_error) NotePooled(*stats);
    scan_.shared_query_count =
        std::max(scan_.shared_query_count, static_cast<int>(shared_count));
    if (!task_.options.exhaustive && index_->kind() != IndexKind::kFlat) {
      scan_.index_kind = index_->kind();
    }
  }

  void Finish() {
    // Sorting the results of all scans of a pass may take long.
    if (!failed()) status_ = task_.interrupt->Check();
    if (failed()) {
      task_.scan = status_;
      return;
    }
    if (carry_ != nullptr) {
      ScanStats stats = {.knows_mass = true};
      carry_->Finish(state_, stats);
      NoteMass(stats);
    }
    scan_.partition = state_.partition();
    scan_.unkept = state_.unkept();
    if (task_.options.pools) {
      scan_.pooled_value = state_.PooledValue();
      scan_.pooled_deviation =
          PooledDeviation(pooled_parts_, scan_.partition, scan_.pooled_value);
    }
    if (task_.options.keeps_all) {
      scan_.all = state_.top().candidates();
      TopK shortlist(task_.options.shortlist_count, &snapshot_);
      for (const Candidate& candidate : scan_.all) shortlist.Offer(candidate);
      scan_.shortlist = shortlist.Sorted();
    } else {
      scan_.shortlist = state_.top().Sorted();
    }
    task_.scan = std::move(scan_);
  }

 private:
  // Sums of segments add up, and so do their deviations and bounds.
  void MergeKnowledge(const ScanStats& stats) {
    NoteFar(stats);
    scan_.complete &= stats.complete;
    scan_.exact &= stats.exact;
    scan_.results_exact &= stats.exact || stats.results_exact;
    NoteMass(stats);
    scan_.certified &= stats.exact || stats.certified;
    if (!scan_.certified) return;
    if (stats.exact) {
      BoundExact();
      return;
    }
    scan_.log_lower = LogAdd(scan_.log_lower, stats.log_lower);
    scan_.log_upper = LogAdd(scan_.log_upper, stats.log_upper);
  }

  // Call before scan_.complete is updated.
  void NoteFar(const ScanStats& stats) {
    if (stats.complete) return;
    if (!stats.far || !(scan_.complete || scan_.far)) {
      scan_.far.reset();
      return;
    }
    if (!scan_.far) scan_.far = FarKeys();
    scan_.far->count += stats.far->count;
    scan_.far->log_most = LogAdd(scan_.far->log_most, stats.far->log_most);
  }

  // Bounds what an exact segment added, considering float rounding: of its
  // logits, and of exponentials and their sum, by less than 2^-18 of everything
  // summed.
  void BoundExact() {
    const SoftmaxPartition& after = state_.partition();
    if (after.count == before_.count) return;
    const PlannedHead& head = *task_.head;
    const double norm =
        head.score_kind == ScoreKind::kCosine ? 1 : index_->max_norm();
    const double rounding =
        kDotRounding * head.logit_factor * Norm(head.vector) * norm;
    const double added = SumAdded(before_, after);
    const double blur = 0x1p-18 * after.sum;
    scan_.log_lower =
        LogAdd(scan_.log_lower,
               after.max + std::log(std::max(0.0, added - blur)) - rounding);
    scan_.log_upper =
        LogAdd(scan_.log_upper, after.max + std::log(added + blur) + rounding);
  }

  // Guesses of one training may all be off in the same direction, so their
  // deviations add; variances of draws add as independent ones.
  void NoteMass(const ScanStats& stats) {
    scan_.knows_mass &= stats.exact || stats.knows_mass;
    scan_.log_variance =
        2 * LogAdd(scan_.log_variance / 2, stats.log_variance / 2);
    scan_.log_drawn_variance =
        LogAdd(scan_.log_drawn_variance, stats.log_drawn_variance);
  }

  // Records values of the segment that were pooled from codes. RowValues was
  // not asked for them, so keys used as values are counted here.
  void NotePooled(const ScanStats& stats) {
    scan_.pooled_exactly = false;
    pooled_parts_.push_back(
        {*stats.pooled_error,
         LogAdd(stats.log_variance, stats.log_drawn_variance)});
    // A segment with codes does not grow.
    const RowTable& rows = *segment_->rows;
    const std::int64_t value_count = rows.value_count();
    scan_.key_as_value_count = key_count_before_;
    if (value_count == 0) {
      scan_.key_as_value_count += stats.scored_count;
    } else if (value_count < query_->scan.row_end) {
      scan_.key_as_value_count += CountKeysAsValues(
          rows, *segment_->indexes[task_.head->field], query_->scan);
    }
  }

  // Counts the segments whose rows are in lists.
  static std::int64_t CountInLists(const Snapshot& snapshot,
                                   const PlannedHead& head) {
    return std::ranges::count_if(
        snapshot.segments, [&head](const SegmentView& view) {
          return view.segment->IndexOf(head.field, head.stored_head)
                     .training() != nullptr;
        });
  }

  // To keep all rows, the best are given room for all of them.
  static std::int64_t KeepCount(const HeadScanTask& task) {
    return task.options.keeps_all
               ? task.plan->masks.EligibleCount(task.head->field)
               : task.options.shortlist_count;
  }

  const Snapshot& snapshot_;
  HeadScanTask& task_;
  AttentionState state_;
  HeadScan scan_;
  absl::Status status_;
  const bool carries_;  // several segments may share something
  std::unique_ptr<ScanCarry> carry_;
  SoftmaxPartition before_;  // state before the segment was added
  const Segment* segment_ = nullptr;
  const KeyIndex* index_ = nullptr;  // of the current segment
  std::int64_t key_count_before_ = 0;
  std::vector<PooledPart> pooled_parts_;
  std::optional<RowValues> values_;
  std::optional<SegmentQuery> query_;
};

}  // namespace

void ScanHeads(const Snapshot& snapshot, std::span<HeadScanTask> tasks) {
  absl::InlinedVector<std::optional<Scanner>, 1> scanners(tasks.size());
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    scanners[t].emplace(snapshot, tasks[t]);
  }
  absl::InlinedVector<Scanner*, 1> waiting;
  absl::InlinedVector<ScanTask, 1> pass;
  for (std::size_t i = 0; i < snapshot.segments.size(); ++i) {
    waiting.clear();
    for (std::optional<Scanner>& scanner : scanners) {
      if (scanner->failed()) continue;
      scanner->Enter(i);
      waiting.push_back(&*scanner);
    }
    // Tasks that use one index are scanned together and leave the front.
    for (auto begin = waiting.begin(); begin != waiting.end();) {
      const KeyIndex& index = (*begin)->index();
      const auto end = std::stable_partition(
          begin, waiting.end(),
          [&](const Scanner* scanner) { return &scanner->index() == &index; });
      pass.clear();
      for (auto s = begin; s != end; ++s) pass.push_back((*s)->SegmentTask());
      index.ScanTogether({pass.data(), pass.size()});
      for (std::size_t t = 0; t < pass.size(); ++t) {
        begin[static_cast<std::ptrdiff_t>(t)]->Absorb(pass[t].stats,
                                                      pass.size());
      }
      begin = end;
    }
  }
  for (std::optional<Scanner>& scanner : scanners) scanner->Finish();
}

}  // namespace attendant
