// The files of a stored snapshot, apart from where it is kept.
#ifndef ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_PARTS_H_
#define ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_PARTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/long_work.h"
#include "core/storage/files/files.h"
#include "core/storage/records/store.h"
#include "core/storage/rocks/database.h"
#include "core/storage/snapshots/snapshot_manifest.h"

namespace attendant {

// What a snapshot holds beside the items.
struct SnapshotMetadata {
  CatalogRecord record;
  std::vector<ModelRecord> models;  // that the record names
};

// Paths of all files below `directory` but the manifest, in order.
absl::StatusOr<std::vector<std::string>> ListSnapshotParts(
    const Files& files, const std::string& directory);

// The sizes of all files together.
absl::StatusOr<std::int64_t> SnapshotPartBytes(
    const Files& files, const std::string& directory,
    const std::vector<std::string>& paths);

// Size and checksum of each, read whole. The work is their bytes.
absl::StatusOr<std::vector<SnapshotPart>> HashSnapshotParts(
    const Files& files, const std::string& directory,
    const std::vector<std::string>& paths, LongWork& work);

// Reads every byte of every file, and decodes record, models and items, whose
// blocks RocksDB verifies. DataLoss "PART: why" if anything is not what the
// manifest says: a part that is missing, too many, or other than it was.
absl::StatusOr<SnapshotMetadata> CheckSnapshotParts(
    const DatabaseResources& resources, const std::string& directory,
    const SnapshotManifest& manifest, LongWork& work);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_PARTS_H_
