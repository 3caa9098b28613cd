// A stored snapshot as one stream of bytes, to be kept elsewhere and imported
// again:
//
//   "ATTNSNP1", the manifest's size u64 little-endian, the manifest (which has
//   sizes and checksums of all parts), the parts in its order, and the checksum
//   of all that as 32 hex digits.
#ifndef ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_STREAM_H_
#define ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_STREAM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/long_work.h"
#include "core/storage/files/stream_hash.h"
#include "core/storage/snapshots/snapshot_files.h"

namespace attendant {

class FileReader;
class FileWriter;

// Reads a snapshot as a stream. Not thread-safe.
class SnapshotExport {
 public:
  // `snapshots` must outlive the object.
  SnapshotExport(const SnapshotFiles* snapshots,
                 std::unique_ptr<SnapshotFiles::Lease> lease);
  ~SnapshotExport();

  const SnapshotManifest& manifest() const { return lease_->manifest(); }
  // Returns the size of the whole stream.
  std::int64_t byte_count() const;

  // Returns the next bytes, at most max(`size`, 32); empty at the end. DataLoss
  // with reason kSnapshotDamaged, naming the part, if a part is not what it
  // was: the stream then lacks its end and is not a snapshot.
  absl::StatusOr<std::string> Next(std::size_t size);

 private:
  absl::StatusOr<std::string> NextOfPart(std::size_t size);

  const SnapshotFiles* const snapshots_;
  const std::unique_ptr<SnapshotFiles::Lease> lease_;
  const std::string header_;
  std::size_t header_bytes_ = 0;  // already returned
  bool ended_ = false;
  std::size_t part_ = 0;  // the one to read next
  std::unique_ptr<FileReader> reader_;
  std::int64_t part_bytes_ = 0;  // read of this part
  std::unique_ptr<StreamHash> part_hash_;
  StreamHash hash_;
};

// Makes a snapshot from a stream. Nothing of it is visible before Finish
// returns OK, and nothing is left if Finish fails or is not called. Not
// thread-safe.
class SnapshotImport {
 public:
  // `snapshots` must outlive the object.
  explicit SnapshotImport(SnapshotFiles* snapshots);
  ~SnapshotImport();

  // Sets the catalog and name to store the snapshot under, instead of those in
  // the stream; an empty one is not replaced. Call before any bytes.
  // InvalidArgument naming "catalog" or "name" if it is not valid.
  absl::Status Name(absl::string_view catalog, absl::string_view name);

  // Appends the next bytes of the stream, any number of them. InvalidArgument
  // if it is not a snapshot stream; DataLoss, naming the part, if it is
  // damaged; AlreadyExists if there is a snapshot of its name;
  // ResourceExhausted if the disk has no space for the announced size, or the
  // catalog has no room for another snapshot. The import can't continue after
  // an error.
  absl::Status Append(absl::string_view bytes);

  // Verifies the whole snapshot and stores it. Errors as for Append and
  // SnapshotFiles::Adopt; DataLoss if the stream ended early.
  absl::StatusOr<SnapshotManifest> Finish(LongWork& work);

 private:
  enum class Step { kHeader, kManifest, kParts, kChecksum, kEnd };

  // Moves bytes of `rest` to `buffer_` until it has `size`; true if it has.
  bool Fill(absl::string_view& rest, std::size_t size);
  absl::Status Take(absl::string_view& rest);
  absl::Status TakeManifest();
  absl::Status TakePart(absl::string_view& rest);
  absl::Status NextPart();

  SnapshotFiles* const snapshots_;
  absl::Status status_;
  std::string catalog_;  // empty: as in the stream
  std::string name_;
  Step step_ = Step::kHeader;
  std::string buffer_;
  std::size_t manifest_bytes_ = 0;
  std::optional<SnapshotManifest> manifest_;
  std::unique_ptr<SnapshotFiles::Draft> draft_;
  std::size_t part_ = 0;  // the one being received
  std::unique_ptr<FileWriter> writer_;
  std::unique_ptr<StreamHash> part_hash_;
  StreamHash hash_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_STREAM_H_
