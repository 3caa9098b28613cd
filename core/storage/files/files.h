// Files and directories that must survive a crash.
#ifndef ATTENDANT_CORE_STORAGE_FILES_FILES_H_
#define ATTENDANT_CORE_STORAGE_FILES_FILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rocksdb {
class FSRandomRWFile;
class FSSequentialFile;
class FSWritableFile;
class FileSystem;
}  // namespace rocksdb

namespace attendant {

// Bytes to read or write at a time in long files.
inline constexpr std::size_t kFileBlockBytes = std::size_t{1} << 20;

inline constexpr absl::string_view kDiskFull = "DISK_FULL";
inline constexpr absl::string_view kFileTooLarge = "FILE_TOO_LARGE";

// Converts `error`, an errno. ResourceExhausted if the disk or quota is full
// (reason kDiskFull), a file may not grow so large (reason kFileTooLarge), or
// no more files may be open (as TooManyOpenFiles); Unavailable (reason
// kFilesNotAccessible) if access is denied; DataLoss if a directory is in place
// of a file, or a file in place of a directory; otherwise Internal.
absl::Status FileError(int error, absl::string_view message);

// As above, with the message "ACTION PATH: why".
absl::Status FileError(int error, absl::string_view action,
                       absl::string_view path);

// Returns ResourceExhausted (reason TOO_MANY_OPEN_FILES). The message is `what`
// and the advice to raise the limit.
absl::Status TooManyOpenFiles(absl::string_view what);

// Returns TooManyOpenFiles if `what`, which opens `file_count` files, would
// leave less than a third of the files that the process may open: connections
// are expected to take that many.
absl::Status CheckOpenFiles(absl::string_view what, std::int64_t file_count);

// The suffix of a file until it is whole; only a crash leaves such a file.
inline constexpr absl::string_view kTemporarySuffix = ".tmp";

// Writes a file under a temporary name, PATH with kTemporarySuffix. Removes it
// when destroyed without Commit. Not thread-safe.
//
// Errors of every method are as for Files; after an error the file can't be
// committed.
class FileWriter {
 public:
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Unbuffered: pass blocks, not single bytes.
  absl::Status Append(absl::string_view bytes);
  // Returns the number of bytes appended.
  std::uint64_t size() const { return size_; }
  // Syncs the file, renames it to its path, replacing any file there, and syncs
  // the directory. After a crash the path has either the old bytes or the new
  // ones; after OK, the new ones. Call once, as the last call.
  absl::Status Commit();

 private:
  friend class Files;
  FileWriter(std::shared_ptr<rocksdb::FileSystem> file_system, std::string path,
             std::unique_ptr<rocksdb::FSWritableFile> file);
  std::string temporary_path() const;

  const std::shared_ptr<rocksdb::FileSystem> file_system_;
  const std::string path_;
  std::unique_ptr<rocksdb::FSWritableFile> file_;  // null: closed
  std::uint64_t size_ = 0;
  absl::Status status_;  // the first error
  bool named_ = false;
};

// Reads a file from its beginning. Not thread-safe.
class FileReader {
 public:
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  // Returns the next bytes, at most `size`; fewer only at the end. Errors as
  // for Files.
  absl::StatusOr<std::string> Read(std::size_t size);
  // As above into `bytes`; returns the number of bytes read.
  absl::StatusOr<std::size_t> Read(std::span<std::byte> bytes);

 private:
  friend class Files;
  FileReader(std::string path, std::unique_ptr<rocksdb::FSSequentialFile> file);

  const std::string path_;
  const std::unique_ptr<rocksdb::FSSequentialFile> file_;
};

// A file system, the same that holds RocksDB's files. A test replaces it by one
// that fails or forgets what was not synced. Thread-safe; cheap to copy.
//
// Errors of every method are as for FileError.
class Files {
 public:
  // Uses the operating system's file system.
  Files();
  // Null: the operating system's.
  explicit Files(std::shared_ptr<rocksdb::FileSystem> file_system);

  const std::shared_ptr<rocksdb::FileSystem>& file_system() const {
    return file_system_;
  }

  // Returns the whole file, or nothing if there is none.
  absl::StatusOr<std::optional<std::string>> ReadFile(
      const std::string& path) const;

  // Returns the last `size` bytes of a file, or all if it has fewer.
  absl::StatusOr<std::string> ReadTail(const std::string& path,
                                       std::size_t size) const;

  // Returns the bytes of a file.
  absl::StatusOr<std::int64_t> FileSize(const std::string& path) const;

  // Opens a file to read part by part.
  absl::StatusOr<std::unique_ptr<FileReader>> OpenToRead(
      const std::string& path) const;

  // Creates a file that gets its name from FileWriter::Commit.
  absl::StatusOr<std::unique_ptr<FileWriter>> NewFile(
      const std::string& path) const;

  // Opens a file to read and write anywhere; creates it if it is missing.
  absl::StatusOr<std::unique_ptr<rocksdb::FSRandomRWFile>> OpenInPlace(
      const std::string& path) const;

  // Replaces the file's content by `bytes`, as FileWriter does.
  absl::Status ReplaceFile(const std::string& path,
                           absl::string_view bytes) const;

  // Creates a directory and its parents, synced. OK if it exists. A directory
  // that could not be synced does not exist after the error.
  absl::Status MakeDirectory(const std::string& path) const;

  // Makes creations, renames and removals in the directory durable.
  absl::Status SyncDirectory(const std::string& path) const;

  // Returns the names in a directory, unordered; empty if it does not exist.
  absl::StatusOr<std::vector<std::string>> ListDirectory(
      const std::string& path) const;

  // Returns an error if the answer is unknown.
  absl::StatusOr<bool> PathExists(const std::string& path) const;

  // Renames a directory to a path that must not exist, and syncs the parents of
  // both.
  absl::Status RenameDirectory(const std::string& from,
                               const std::string& to) const;

  // Makes `to`, which must not exist, another name of the file `from`, which
  // must never change. Not every file system supports this, nor do two of them
  // together. The caller syncs the directory.
  absl::Status LinkFile(const std::string& from, const std::string& to) const;

  // Makes `to` a copy of the file `from`, as FileWriter does.
  absl::Status CopyFile(const std::string& from, const std::string& to) const;

  // Removes a file or an empty directory. OK if it does not exist. It may
  // reappear after a power failure until its directory is synced.
  absl::Status RemoveFile(const std::string& path) const;

  // Removes the directory and all below it, durably. OK if it does not exist.
  absl::Status RemoveTree(const std::string& path) const;

 private:
  // As RemoveTree, but not synced.
  absl::Status RemoveAll(const std::string& path) const;

  std::shared_ptr<rocksdb::FileSystem> file_system_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_FILES_FILES_H_
