// Turns segments of a snapshot into one, with trained indexes.
#ifndef ATTENDANT_CORE_CATALOG_LIVE_REBUILD_H_
#define ATTENDANT_CORE_CATALOG_LIVE_REBUILD_H_

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/scratch_files.h"
#include "core/catalog/segments/merge_plan.h"
#include "core/catalog/segments/snapshot.h"
#include "core/shortlist/kinds/flat_index.h"

namespace attendant {

// A segment of the live rows of the plan's segments of `snapshot`, in the order
// of its segments and rows, with the index that each field wants if it has
// keys, and head keys by `models` (by field): those of the snapshot are taken
// over, another model's are projected, and then all segments are merged. Null
// if no row is live. Floats of fields that keep them on disk go to `files`, if
// the index is of a kind that may. Takes seconds for 100,000 rows where it
// retrains; Cancelled soon after `cancelled` is set. Errors of IvfIndex::Build
// and of `files`; ResourceExhausted when out of memory.
absl::StatusOr<std::shared_ptr<const Segment>> MergeSegments(
    const Snapshot& snapshot, const MergePlan& plan,
    const std::vector<NamedModel>& models, ScratchFiles& files,
    const std::atomic<bool>& cancelled);

// FLAT head indexes of one field for the first row_count rows of a segment,
// with room for its capacity.
std::vector<std::shared_ptr<FlatIndex>> ProjectSegment(
    const Segment& segment, int field, RowIndex row_count,
    const AttentionModel& model);

// The merged segment as it is now: rows that died since `before` was merged are
// dead. `now` [plan.end - plan.first]: the plan's segments as they are now.
SegmentView ViewOfMerged(const std::shared_ptr<const Segment>& merged,
                         const MergePlan& plan, const Snapshot& before,
                         std::span<const SegmentView> now);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_LIVE_REBUILD_H_
