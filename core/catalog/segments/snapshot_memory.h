// The memory that a snapshot uses.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENTS_SNAPSHOT_MEMORY_H_
#define ATTENDANT_CORE_CATALOG_SEGMENTS_SNAPSHOT_MEMORY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/memory_parts.h"
#include "core/catalog/segments/merge_plan.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// Memory of the keys, codes and index of one key field, including its heads.
MemoryParts FieldMemory(const Snapshot& snapshot, int field);

// Memory of the rows and indexes of a segment.
MemoryParts SegmentMemory(const Segment& segment);

// Memory of the whole snapshot; the store's part, `database`, is 0.
MemoryParts SnapshotMemory(const Snapshot& snapshot);

// Estimates the memory, in bytes, of items when they are written: as rows of a
// growing segment and in the store's write buffers. `models`: by key field, as
// in a snapshot.
std::int64_t WriteBytes(std::span<const Item* const> items,
                        const std::vector<NamedModel>& models);

// Estimates the memory, in bytes, that a merge needs in addition to its source
// segments: the resulting segment, with head keys by wanted_models (by field)
// if it retrains, and the working memory of index training.
std::int64_t MergeBytes(const Snapshot& snapshot, const MergePlan& plan,
                        const std::vector<NamedModel>& wanted_models);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_SNAPSHOT_MEMORY_H_
