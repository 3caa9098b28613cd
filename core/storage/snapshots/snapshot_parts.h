// The files of a stored snapshot, wherever it is kept.
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

// What a snapshot holds in addition to the items.
struct SnapshotMetadata {
  CatalogRecord record;
  std::vector<ModelRecord> models;  // named by the record
};

// Returns the paths of all files below `directory` except the manifest, sorted.
absl::StatusOr<std::vector<std::string>> ListSnapshotParts(
    const Files& files, const std::string& directory);

// Returns the total size of the files.
absl::StatusOr<std::int64_t> SnapshotPartBytes(
    const Files& files, const std::string& directory,
    const std::vector<std::string>& paths);

// Returns the size and checksum of each file, read in full. Their bytes are the
// work.
absl::StatusOr<std::vector<SnapshotPart>> HashSnapshotParts(
    const Files& files, const std::string& directory,
    const std::vector<std::string>& paths, LongWork& work);

// Reads every byte of every file and decodes the record, the models and the
// items, whose blocks RocksDB verifies. DataLoss "PART: why" if anything
// differs from the manifest: a part is missing, unexpected or changed.
absl::StatusOr<SnapshotMetadata> CheckSnapshotParts(
    const DatabaseResources& resources, const std::string& directory,
    const SnapshotManifest& manifest, LongWork& work);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_PARTS_H_
