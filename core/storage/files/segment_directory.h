// Where a catalog keeps the files of its segments: a cache of what its database
// holds, which is never trusted unseen.
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

// What a whole file looks like.
struct FileStamp {
  std::uint64_t size = 0;
  std::string hash;  // StreamHash::Text of all bytes

  bool operator==(const FileStamp&) const = default;
};

// A file that is being written; it has no name before Commit.
class StampedFile : public ByteSink {
 public:
  // Once: synced, with its name.
  virtual absl::StatusOr<FileStamp> Commit() = 0;
};

// A file that is being read. Its bytes may be any until Verify says that they
// are those that were written: who reads them keeps to sizes that make sense,
// and uses nothing that came of them before.
class StampedSource : public ByteSource {
 public:
  // Reads what is left. DataLoss naming the file if its bytes, as they were
  // given out, are not as stamped; errors of reading it. Last.
  virtual absl::Status Verify() = 0;
};

// DIRECTORY/MANIFEST says which files there are; the others mean nothing.
// Thread-safe, but one thread at a time writes.
class SegmentDirectory {
 public:
  // The directory is made when it is needed.
  SegmentDirectory(std::string path, Files files)
      : path_(std::move(path)), files_(std::move(files)) {}

  // A file of about so many bytes: ResourceExhausted if the disk has no room
  // for them, also later, for what is written. Cancelled once `cancelled`, if
  // not null, is true; it must outlive the file. Errors of Files.
  absl::StatusOr<std::unique_ptr<StampedFile>> Create(
      const std::string& name, std::uint64_t byte_count,
      const std::atomic<bool>* cancelled = nullptr) const;

  // The file from its beginning. DataLoss naming the file if it is missing.
  absl::StatusOr<std::unique_ptr<StampedSource>> Open(
      const std::string& name, const FileStamp& stamp) const;

  // Replaces the manifest; synced.
  absl::Status PutManifest(absl::string_view bytes) const;
  // Nothing if there is none; DataLoss if it is damaged.
  absl::StatusOr<std::optional<std::string>> GetManifest() const;

  // The greatest N of files named WHAT-N; 0 if there are none.
  std::int64_t LastNumber() const;
  // Removes all files but the manifest and those named. What can't be removed
  // stays: it is in nobody's way.
  void RemoveOthers(const std::set<std::string>& kept) const;
  // Removes the manifest, then the rest.
  absl::Status Clear() const;

 private:
  std::string path_of(absl::string_view name) const;

  const std::string path_;
  const Files files_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_FILES_SEGMENT_DIRECTORY_H_
