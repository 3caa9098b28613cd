// The query of one head to one segment.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_SEGMENT_QUERY_H_
#define ATTENDANT_CORE_CATALOG_QUERY_SEGMENT_QUERY_H_

#include <cstddef>

#include "core/base/interrupt.h"
#include "core/catalog/query/bias.h"
#include "core/catalog/query/query_plan.h"
#include "core/catalog/segments/snapshot.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// The query of a head to segment i of a snapshot, with the objects it points
// to. All arguments must outlive it.
class SegmentQuery {
 public:
  SegmentQuery(const Snapshot& snapshot, const QueryPlan& plan,
               const PlannedHead& head, std::size_t i,
               const Interrupt& interrupt)
      : bias_(plan.biases, plan.time, *snapshot.segments[i].segment->rows) {
    scan.query = head.vector;
    scan.output_weight = head.output_weight;
    scan.score_kind = head.score_kind;
    scan.logit_factor = head.logit_factor;
    scan.segment = static_cast<std::int32_t>(i);
    scan.row_end = snapshot.segments[i].row_end;
    scan.excluded = plan.masks[i].excluded;
    scan.allowed = plan.masks[i].allowed.get();
    scan.dead = DeadKeysOf(snapshot.segments[i], plan.masks[i], head);
    scan.eligible_count = plan.masks.KnownEligibleCount(i, head.field);
    if (!plan.biases.empty()) scan.bias = &bias_;
    if (head.projection) scan.projection = &*head.projection;
    scan.known_masses = snapshot.known_masses.get();
    scan.interrupt = &interrupt;
  }
  SegmentQuery(const SegmentQuery&) = delete;
  SegmentQuery& operator=(const SegmentQuery&) = delete;

 private:
  // Null if the query excludes other rows too, or scans the keys of a head.
  static const DeadKeys* DeadKeysOf(const SegmentView& view,
                                    const SegmentMask& mask,
                                    const PlannedHead& head) {
    const bool only_dead =
        mask.excluded != nullptr && mask.excluded == view.dead.get();
    return only_dead && head.stored_head < 0 ? view.dead_keys[head.field].get()
                                             : nullptr;
  }

  RowBias bias_;

 public:
  ScanQuery scan;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_SEGMENT_QUERY_H_
