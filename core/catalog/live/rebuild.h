// Merges segments of a snapshot into one, with trained indexes.
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

// Returns a segment with the live rows of the plan's segments of `snapshot`, in
// the order of segments and rows; null if no row is live. Each field with keys
// has the index it wants. Head keys are those of `models` (by field): they are
// copied if the snapshot has the same model; keys of another model are
// projected, in which case all segments are merged. Floats of fields that keep
// them on disk go to `files`, if the index kind allows it.
//
// Takes seconds for 100,000 rows if it retrains. Returns Cancelled soon after
// `cancelled` is set. Errors of IvfIndex::Build and of `files`;
// ResourceExhausted when out of memory.
absl::StatusOr<std::shared_ptr<const Segment>> MergeSegments(
    const Snapshot& snapshot, const MergePlan& plan,
    const std::vector<NamedModel>& models, ScratchFiles& files,
    const std::atomic<bool>& cancelled);

// Returns FLAT head indexes of one field for the first row_count rows of a
// segment, with room for its capacity.
std::vector<std::shared_ptr<FlatIndex>> ProjectSegment(
    const Segment& segment, int field, RowIndex row_count,
    const AttentionModel& model);

// Returns the current view of the merged segment: rows that died since `before`
// was merged are dead. `now` [plan.end - plan.first] has the current views of
// the plan's segments.
SegmentView ViewOfMerged(const std::shared_ptr<const Segment>& merged,
                         const MergePlan& plan, const Snapshot& before,
                         std::span<const SegmentView> now);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_LIVE_REBUILD_H_
