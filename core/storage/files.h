// Small files and directories that must survive a crash.
#ifndef ATTENDANT_CORE_STORAGE_FILES_H_
#define ATTENDANT_CORE_STORAGE_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// What `error`, an errno, means: ResourceExhausted (reason DISK_FULL) if the
// disk or quota is full, or as TooManyOpenFiles if no more files may be open;
// PermissionDenied if access is refused; else Internal. The message is
// "ACTION PATH: why".
absl::Status FileError(int error, absl::string_view action,
                       absl::string_view path);

// ResourceExhausted (reason TOO_MANY_OPEN_FILES): `what`, and what to do.
absl::Status TooManyOpenFiles(absl::string_view what);

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

// The whole of a small file, or nothing if there is none.
absl::StatusOr<std::optional<std::string>> ReadFile(const std::string& path);

// What ReplaceFile's file is called until it is whole; only a crash leaves one.
inline constexpr absl::string_view kTemporarySuffix = ".tmp";

// Replaces the file by `bytes` such that after a crash it holds either the old
// or the new bytes, and after OK the new ones.
absl::Status ReplaceFile(const std::string& path, absl::string_view bytes);

// Makes a directory and the ones above it, synced. OK if it is there.
absl::Status MakeDirectory(const std::string& path);

// Makes what was created, renamed or removed in the directory last.
absl::Status SyncDirectory(const std::string& path);

// Names in a directory, in no order; empty if there is none.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

bool PathExists(const std::string& path);

// Removes a file, or a directory that is empty. OK if there is none.
absl::Status RemoveFile(const std::string& path);

// Removes the directory and all below it. OK if there is none.
absl::Status RemoveTree(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_FILES_H_
