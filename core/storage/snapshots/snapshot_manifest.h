// The description of a stored snapshot: the file MANIFEST.
#ifndef ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_MANIFEST_H_
#define ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/attention/models/model.h"

namespace attendant {

// Parts of a snapshot, below its directory.
inline constexpr absl::string_view kSnapshotManifest = "MANIFEST";
inline constexpr absl::string_view kSnapshotRecord = "record";
inline constexpr absl::string_view kSnapshotDatabase = "database";
inline constexpr absl::string_view kSnapshotModels = "models";
std::string SnapshotModelPath(const ModelName& name);

inline constexpr std::int64_t kMaxSnapshotManifestBytes = 16 << 20;
// Enough for some 600 GB, as tables have up to 64 MiB.
inline constexpr std::int64_t kMaxSnapshotParts = 10000;

struct SnapshotPart {
  std::string path;  // below the snapshot's directory
  std::int64_t size = 0;
  std::string hash;  // see stream_hash.h

  bool operator==(const SnapshotPart&) const = default;
};

struct SnapshotManifest {
  std::string catalog;  // the catalog's name when it was taken
  std::string name;
  std::string catalog_uid;
  absl::Time create_time;  // to the nanosecond
  // The sequence of the last write that it holds.
  std::int64_t sequence = 0;
  std::int64_t item_count = 0;
  // All files but the manifest: the record, those of the database, and one per
  // model at SnapshotModelPath. At most kMaxSnapshotParts.
  std::vector<SnapshotPart> parts;

  // Returns the bytes of all parts.
  std::int64_t byte_count() const;

  bool operator==(const SnapshotManifest&) const = default;
};

// Returns JSON text and a line with its checksum.
std::string EncodeSnapshotManifest(const SnapshotManifest& manifest);

// Decodes what EncodeSnapshotManifest returned. DataLoss, saying what is wrong,
// if `text` is anything else. Paths stay below the snapshot's directory,
// whoever wrote the text.
absl::StatusOr<SnapshotManifest> DecodeSnapshotManifest(absl::string_view text);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_MANIFEST_H_
