// What a snapshot takes of memory.
#ifndef ATTENDANT_CORE_CATALOG_SNAPSHOT_MEMORY_H_
#define ATTENDANT_CORE_CATALOG_SNAPSHOT_MEMORY_H_

#include "core/base/memory_parts.h"
#include "core/catalog/snapshot.h"

namespace attendant {

// Keys, codes and index of one key field, its heads' included.
MemoryParts FieldMemory(const Snapshot& snapshot, int field);

// All of it; the store's part, `database`, is 0.
MemoryParts SnapshotMemory(const Snapshot& snapshot);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SNAPSHOT_MEMORY_H_
