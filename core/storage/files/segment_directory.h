// The directory of a catalog's segment files: a cache of what its database
// holds, never trusted without verification.
#ifndef ATTENDANT_CORE_STORAGE_FILES_SEGMENT_DIRECTORY_H_
#define ATTENDANT_CORE_STORAGE_FILES_SEGMENT_DIRECTORY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/byte_stream.h"
#include "core/storage/files/files.h"

namespace attendant {

// The size and checksum of a whole file.
struct FileStamp {
  std::uint64_t size = 0;
  std::string hash;  // StreamHash::Text of all bytes

  bool operator==(const FileStamp&) const = default;
};

// A file that is being written; it has no name before Commit.
class StampedFile : public ByteSink {
 public:
  // Syncs the file and gives it its name. Call once.
  virtual absl::StatusOr<FileStamp> Commit() = 0;
};

// A file that is being read. Its bytes may be wrong until Verify confirms that
// they are those that were written: a reader must check that sizes make sense,
// and must not use anything derived from the bytes before.
class StampedSource : public ByteSource {
 public:
  // Reads the rest of the file. DataLoss naming the file if its bytes, as they
  // were returned, don't match the stamp; errors of reading it. The last call.
  virtual absl::Status Verify() = 0;
};

// DIRECTORY/MANIFEST names the valid files; others are ignored. Thread-safe,
// but only one thread may write at a time.
class SegmentDirectory {
 public:
  // Creates the directory when it is needed.
  SegmentDirectory(std::string path, Files files)
      : path_(std::move(path)), files_(std::move(files)) {}

  // Creates a file of about `byte_count` bytes. ResourceExhausted if the disk
  // has no room for them, now or during later writes. Cancelled once
  // `cancelled`, if not null, is true; it must outlive the file. Errors of
  // Files.
  absl::StatusOr<std::unique_ptr<StampedFile>> Create(
      const std::string& name, std::uint64_t byte_count,
      const std::atomic<bool>* cancelled = nullptr) const;

  // Opens the file from its beginning. DataLoss naming the file if it is
  // missing.
  absl::StatusOr<std::unique_ptr<StampedSource>> Open(
      const std::string& name, const FileStamp& stamp) const;

  // Replaces the manifest; synced.
  absl::Status PutManifest(absl::string_view bytes) const;
  // Returns nothing if there is no manifest; DataLoss if it is damaged.
  absl::StatusOr<std::optional<std::string>> GetManifest() const;

  // Returns the greatest N of files named WHAT-N; 0 if there are none.
  std::int64_t LastNumber() const;
  // Removes all files except the manifest and those in `kept`. A file that
  // can't be removed stays, which does no harm.
  void RemoveOthers(const std::set<std::string>& kept) const;
  // Removes the manifest, then the other files.
  absl::Status Clear() const;

 private:
  std::string path_of(absl::string_view name) const;

  const std::string path_;
  const Files files_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_FILES_SEGMENT_DIRECTORY_H_
