// Turns the segments of a snapshot into one, with trained indexes.
#ifndef ATTENDANT_CORE_CATALOG_REBUILD_H_
#define ATTENDANT_CORE_CATALOG_REBUILD_H_

#include <atomic>
#include <memory>

#include "absl/status/statusor.h"
#include "core/catalog/snapshot.h"

namespace attendant {

// A segment of all live rows of `snapshot`, in the order of its segments and
// rows, with an IVF index for each field that wants one and has keys. Takes
// seconds for 100,000 rows; Cancelled soon after `cancelled` is set. Errors of
// IvfIndex::Build; ResourceExhausted when out of memory.
absl::StatusOr<std::shared_ptr<const Segment>> MergeSegments(
    const Snapshot& snapshot, const std::atomic<bool>& cancelled);

// The merged segment as `now` sees it: rows that died since `before` was merged
// are dead. The segments of `before` are the first ones of `now`.
SegmentView ViewOfMerged(std::shared_ptr<const Segment> merged,
                         const Snapshot& before, const Snapshot& now);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_REBUILD_H_
