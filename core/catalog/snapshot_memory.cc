#include "core/catalog/snapshot_memory.h"

namespace attendant {

MemoryParts FieldMemory(const Snapshot& snapshot, int field) {
  MemoryParts parts;
  for (const SegmentView& view : snapshot.segments) {
    parts += view.segment->indexes[field]->memory();
    for (const auto& head : view.segment->head_indexes[field]) {
      parts += head->memory();
    }
  }
  return parts;
}

MemoryParts SnapshotMemory(const Snapshot& snapshot) {
  MemoryParts parts;
  for (int f = 0; f < static_cast<int>(snapshot.encoders.size()); ++f) {
    parts += FieldMemory(snapshot, f);
    if (snapshot.encoders[f] != nullptr) {
      parts.encoders += snapshot.encoders[f]->memory_bytes();
    }
  }
  for (const SegmentView& view : snapshot.segments) {
    parts += view.segment->rows->memory();
    if (view.dead != nullptr) parts.tombstones += view.dead->memory_bytes();
  }
  return parts;
}

}  // namespace attendant
