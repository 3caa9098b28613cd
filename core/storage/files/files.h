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

// What is read or written at a time, where files are long.
inline constexpr std::size_t kFileBlockBytes = std::size_t{1} << 20;

inline constexpr absl::string_view kDiskFull = "DISK_FULL";
inline constexpr absl::string_view kFileTooLarge = "FILE_TOO_LARGE";

// What `error`, an errno, means: ResourceExhausted (reason kDiskFull) if the
// disk or quota is full, kFileTooLarge if a file may not be as large, or as
// TooManyOpenFiles if no more files may be open; Unavailable (reason
// kFilesNotAccessible) if access is denied; DataLoss where a directory stands
// in place of a file, or a file of one; else Internal.
absl::Status FileError(int error, absl::string_view message);

// The same with the message "ACTION PATH: why".
absl::Status FileError(int error, absl::string_view action,
                       absl::string_view path);

// ResourceExhausted (reason TOO_MANY_OPEN_FILES): `what`, and what to do.
absl::Status TooManyOpenFiles(absl::string_view what);

// The same if `what`, which opens so many files, would leave less than a third
// of those that the process may open: that is what connections are counted on
// to take.
absl::Status CheckOpenFiles(absl::string_view what, std::int64_t file_count);

// A file descriptor, closed at the end. Movable.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.fd_) {
    other.fd_ = -1;
  }
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// What a file is called until it is whole; only a crash leaves one.
inline constexpr absl::string_view kTemporarySuffix = ".tmp";

// A file that is being written under another name: PATH with kTemporarySuffix.
// What is not committed is removed at the end. Not thread-safe.
//
// Errors of every method as of Files; after one the file can't be committed.
class FileWriter {
 public:
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Not buffered: give it blocks, not bytes.
  absl::Status Append(absl::string_view bytes);
  // Of all that was appended.
  std::uint64_t size() const { return size_; }
  // Syncs the file and gives it its name, in place of a file that had it, and
  // syncs the directory: after a crash the name has the old bytes or the new
  // ones, and after OK the new ones. Once, and nothing after it.
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

// A file that is read from its beginning on. Not thread-safe.
class FileReader {
 public:
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  // The next bytes, at most `size`; fewer only at the end. Errors as of Files.
  absl::StatusOr<std::string> Read(std::size_t size);
  // The same into `bytes`; tells how many they are.
  absl::StatusOr<std::size_t> Read(std::span<std::byte> bytes);

 private:
  friend class Files;
  FileReader(std::string path, std::unique_ptr<rocksdb::FSSequentialFile> file);

  const std::string path_;
  const std::unique_ptr<rocksdb::FSSequentialFile> file_;
};

// A file system, the one that RocksDB has its files in too: a test puts another
// in its place that fails, or forgets what was not synced. Thread-safe; cheap
// to copy.
//
// Errors of every method as FileError says.
class Files {
 public:
  // The operating system's.
  Files();
  // Null: the operating system's.
  explicit Files(std::shared_ptr<rocksdb::FileSystem> file_system);

  const std::shared_ptr<rocksdb::FileSystem>& file_system() const {
    return file_system_;
  }

  // The whole of a file, or nothing if there is none.
  absl::StatusOr<std::optional<std::string>> ReadFile(
      const std::string& path) const;

  // The last bytes of a file: `size`, or all if it has fewer.
  absl::StatusOr<std::string> ReadTail(const std::string& path,
                                       std::size_t size) const;

  // Bytes of a file.
  absl::StatusOr<std::int64_t> FileSize(const std::string& path) const;

  // A file to read part by part.
  absl::StatusOr<std::unique_ptr<FileReader>> OpenToRead(
      const std::string& path) const;

  // A new file that gets its name by FileWriter::Commit.
  absl::StatusOr<std::unique_ptr<FileWriter>> NewFile(
      const std::string& path) const;

  // A file, made if it is missing, to read and write anywhere.
  absl::StatusOr<std::unique_ptr<rocksdb::FSRandomRWFile>> OpenInPlace(
      const std::string& path) const;

  // Replaces the file by `bytes`, as FileWriter does.
  absl::Status ReplaceFile(const std::string& path,
                           absl::string_view bytes) const;

  // Makes a directory and the ones above it, synced. OK if it is there. One
  // that could not be synced is not there after the error.
  absl::Status MakeDirectory(const std::string& path) const;

  // Makes what was created, renamed or removed in the directory last.
  absl::Status SyncDirectory(const std::string& path) const;

  // Names in a directory, in no order; empty if there is none.
  absl::StatusOr<std::vector<std::string>> ListDirectory(
      const std::string& path) const;

  // An error if that can't be told.
  absl::StatusOr<bool> PathExists(const std::string& path) const;

  // Gives a directory another name, which nothing has, and syncs the
  // directories above both.
  absl::Status RenameDirectory(const std::string& from,
                               const std::string& to) const;

  // Makes `to`, which does not exist, another name of the file `from`, which
  // never changes. Not every file system can, nor two of them together. The
  // caller syncs the directory.
  absl::Status LinkFile(const std::string& from, const std::string& to) const;

  // Makes `to` a copy of the file `from`, as FileWriter does.
  absl::Status CopyFile(const std::string& from, const std::string& to) const;

  // Removes a file, or a directory that is empty. OK if there is none. It may
  // be back after a power cut, until its directory is synced.
  absl::Status RemoveFile(const std::string& path) const;

  // Removes the directory and all below it, for good. OK if there is none.
  absl::Status RemoveTree(const std::string& path) const;

 private:
  // As RemoveTree, and not synced.
  absl::Status RemoveAll(const std::string& path) const;

  std::shared_ptr<rocksdb::FileSystem> file_system_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_FILES_FILES_H_
