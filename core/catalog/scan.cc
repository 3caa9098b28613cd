#include "core/catalog/scan.h"

#include <utility>

#include "core/base/status.h"
#include "core/catalog/bias.h"
#include "core/shortlist/key_scorer.h"

namespace attendant {
namespace {

// Values of a segment; where a row has none, its key, which is counted.
class RowValues : public ValueSource {
 public:
  RowValues(const Segment& segment, int field, std::int64_t* missing_count)
      : rows_(*segment.rows),
        keys_(*segment.indexes[field]),
        missing_count_(missing_count) {}

  const float* ValueOf(RowIndex row) const override {
    const float* value = rows_.ValueOf(row);
    if (value != nullptr) return value;
    ++*missing_count_;
    return keys_.Key(row).data();
  }

 private:
  const RowTable& rows_;
  const KeyIndex& keys_;
  std::int64_t* missing_count_;
};

// The query of one head on one segment, with what it points to.
struct SegmentQuery {
  SegmentQuery(const Snapshot& snapshot, const QueryPlan& plan,
               const PlannedHead& head, std::size_t i)
      : bias(plan.biases, plan.time, *snapshot.segments[i].segment->rows) {
    scan.query = head.vector;
    scan.output_weight = head.output_weight;
    scan.score_kind = head.score_kind;
    scan.logit_factor = head.logit_factor;
    scan.segment = static_cast<std::int32_t>(i);
    scan.row_end = snapshot.segments[i].row_end;
    scan.excluded = plan.masks[i].excluded;
    scan.allowed = plan.masks[i].allowed.get();
    if (!plan.biases.empty()) scan.bias = &bias;
    if (head.projection) scan.projection = &*head.projection;
  }
  SegmentQuery(const SegmentQuery&) = delete;
  SegmentQuery& operator=(const SegmentQuery&) = delete;

  RowBias bias;
  ScanQuery scan;
};

}  // namespace

absl::StatusOr<HeadScan> ScanHead(const Snapshot& snapshot,
                                  const QueryPlan& plan,
                                  const PlannedHead& head,
                                  const HeadScanOptions& options,
                                  const Interrupt& interrupt) {
  // Keeping all is having room for all among the best.
  const std::int64_t keep_count = options.keeps_all
                                      ? plan.masks.EligibleCount(head.field)
                                      : options.shortlist_count;
  AttentionState state(
      keep_count, &snapshot,
      options.pools ? snapshot.schema->PooledDim(head.field) : 0);
  HeadScan scan;
  for (std::size_t i = 0; i < snapshot.segments.size(); ++i) {
    const Segment& segment = *snapshot.segments[i].segment;
    const KeyIndex& index = segment.IndexOf(head.field, head.stored_head);
    const RowValues values(segment, head.field, &scan.key_as_value_count);
    SegmentQuery query(snapshot, plan, head, i);
    query.scan.values = &values;
    query.scan.exhaustive = options.exhaustive;
    query.scan.interrupt = &interrupt;
    ATTENDANT_ASSIGN_OR_RETURN(const ScanStats stats,
                               index.Scan(query.scan, state));
    scan.scored_count += stats.scored_count;
    scan.complete &= stats.complete;
    if (!options.exhaustive && index.kind() == IndexKind::kIvf) {
      scan.index_kind = IndexKind::kIvf;
    }
  }
  scan.partition = state.partition();
  if (options.pools) scan.pooled_value = state.PooledValue();
  if (options.keeps_all) {
    scan.all = state.top().candidates();
    TopK shortlist(options.shortlist_count, &snapshot);
    for (const Candidate& candidate : scan.all) shortlist.Offer(candidate);
    scan.shortlist = shortlist.Sorted();
  } else {
    scan.shortlist = state.top().Sorted();
  }
  return scan;
}

absl::StatusOr<ScoredRows> ScoreInHeads(const Snapshot& snapshot,
                                        const QueryPlan& plan,
                                        std::vector<RowAddress> rows,
                                        const Interrupt& interrupt) {
  ScoredRows scored;
  scored.rows = std::move(rows);
  for (const PlannedHead& head : plan.heads) {
    std::vector<float>& similarities =
        scored.similarities.emplace_back(scored.size());
    std::vector<float>& logits = scored.logits.emplace_back(scored.size());
    // Runs of rows of one segment share its query.
    for (std::size_t begin = 0; begin < scored.size();) {
      const std::int32_t segment = scored.rows[begin].segment;
      std::vector<RowIndex> run;
      std::size_t end = begin;
      while (end < scored.size() && scored.rows[end].segment == segment) {
        run.push_back(scored.rows[end++].row);
      }
      SegmentQuery query(snapshot, plan, head,
                         static_cast<std::size_t>(segment));
      query.scan.interrupt = &interrupt;
      const KeyIndex& index = snapshot.segments[segment].segment->IndexOf(
          head.field, head.stored_head);
      const std::size_t count = end - begin;
      ATTENDANT_RETURN_IF_ERROR(ScoreRows(
          index, query.scan, run, std::span(similarities).subspan(begin, count),
          std::span(logits).subspan(begin, count)));
      begin = end;
    }
  }
  return scored;
}

}  // namespace attendant
