// What a snapshot takes of memory.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENTS_SNAPSHOT_MEMORY_H_
#define ATTENDANT_CORE_CATALOG_SEGMENTS_SNAPSHOT_MEMORY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/memory_parts.h"
#include "core/catalog/segments/merge_plan.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// Keys, codes and index of one key field, its heads' included.
MemoryParts FieldMemory(const Snapshot& snapshot, int field);

// Rows and indexes of a segment.
MemoryParts SegmentMemory(const Segment& segment);

// All of it; the store's part, `database`, is 0.
MemoryParts SnapshotMemory(const Snapshot& snapshot);

// About what items take when they are written, in bytes: as rows of a growing
// segment, and in the store's write buffers. models: by key field, as those of
// a snapshot.
std::int64_t WriteBytes(std::span<const Item* const> items,
                        const std::vector<NamedModel>& models);

// About what a merge takes beside the segments that it is of, in bytes: the
// segment that it makes, with head keys by wanted_models (by field) where it
// retrains, and what is held while indexes learn.
std::int64_t MergeBytes(const Snapshot& snapshot, const MergePlan& plan,
                        const std::vector<NamedModel>& wanted_models);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_SNAPSHOT_MEMORY_H_
