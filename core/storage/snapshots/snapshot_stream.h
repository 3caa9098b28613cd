// A stored snapshot as one stream of bytes, to be kept elsewhere and brought
// back:
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
  // `snapshots` must outlive it.
  SnapshotExport(const SnapshotFiles* snapshots,
                 std::unique_ptr<SnapshotFiles::Lease> lease);
  ~SnapshotExport();

  const SnapshotManifest& manifest() const { return lease_->manifest(); }
  // Of the whole stream.
  std::int64_t byte_count() const;

  // The next bytes, at most `size` (or 32) of them; empty at the end. DataLoss
  // with reason kSnapshotDamaged, naming the part, if one is not what it was:
  // the stream then has no end, and is no snapshot.
  absl::StatusOr<std::string> Next(std::size_t size);

 private:
  absl::StatusOr<std::string> NextOfPart(std::size_t size);

  const SnapshotFiles* const snapshots_;
  const std::unique_ptr<SnapshotFiles::Lease> lease_;
  const std::string header_;
  std::size_t header_bytes_ = 0;  // handed out
  bool ended_ = false;
  std::size_t part_ = 0;  // the one to be read
  std::unique_ptr<FileReader> reader_;
  std::int64_t part_bytes_ = 0;  // read of it
  std::unique_ptr<StreamHash> part_hash_;
  StreamHash hash_;
};

// Makes a snapshot of a stream. Nothing is seen of it before Finish returned
// OK, and nothing is left if it did not, or was not called. Not thread-safe.
class SnapshotImport {
 public:
  // `snapshots` must outlive it.
  explicit SnapshotImport(SnapshotFiles* snapshots);
  ~SnapshotImport();

  // What it is to be stored as, in place of the catalog and name that it had;
  // empty: as it was. Before any bytes. InvalidArgument naming "catalog" or
  // "name" if that can't be one.
  absl::Status Name(absl::string_view catalog, absl::string_view name);

  // The next bytes, of any number. InvalidArgument if the stream is none of
  // ours; DataLoss, naming the part, if it is damaged; AlreadyExists if there
  // is a snapshot of its name; ResourceExhausted if the disk has no space for
  // what is announced, or there is none for another snapshot. After an error
  // there is no going on.
  absl::Status Append(absl::string_view bytes);

  // Verifies the whole and stores it. Errors as Append and
  // SnapshotFiles::Adopt; DataLoss if the stream ended early.
  absl::StatusOr<SnapshotManifest> Finish(LongWork& work);

 private:
  enum class Step { kHeader, kManifest, kParts, kChecksum, kEnd };

  // Takes bytes of `rest` until `buffer_` has `size`; true if it has.
  bool Fill(absl::string_view& rest, std::size_t size);
  absl::Status Take(absl::string_view& rest);
  absl::Status TakeManifest();
  absl::Status TakePart(absl::string_view& rest);
  absl::Status NextPart();

  SnapshotFiles* const snapshots_;
  absl::Status status_;
  std::string catalog_;  // empty: that of the stream
  std::string name_;
  Step step_ = Step::kHeader;
  std::string buffer_;
  std::size_t manifest_bytes_ = 0;
  std::optional<SnapshotManifest> manifest_;
  std::unique_ptr<SnapshotFiles::Draft> draft_;
  std::size_t part_ = 0;  // the one that comes
  std::unique_ptr<FileWriter> writer_;
  std::unique_ptr<StreamHash> part_hash_;
  StreamHash hash_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_SNAPSHOTS_SNAPSHOT_STREAM_H_
