#include "core/storage/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr int kFileMode = 0644;

absl::StatusOr<FileDescriptor> OpenFile(const std::string& path, int flags) {
  FileDescriptor file(open(path.c_str(), flags | O_CLOEXEC, kFileMode));
  if (!file.valid()) return FileError(errno, "can't open", path);
  return file;
}

absl::Status WriteAll(const FileDescriptor& file, absl::string_view bytes,
                      const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return FileError(errno, "can't write", path);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (fsync(file.get()) != 0) return FileError(errno, "can't sync", path);
  return absl::OkStatus();
}

}  // namespace

absl::Status FileError(int error, absl::string_view action,
                       absl::string_view path) {
  const std::string message =
      absl::StrCat(action, " ", path, ": ",
                   std::error_code(error, std::generic_category()).message());
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return StatusWithReason(absl::StatusCode::kResourceExhausted, message,
                              "DISK_FULL");
    case EMFILE:
    case ENFILE:
      return TooManyOpenFiles(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::Status TooManyOpenFiles(absl::string_view what) {
  return StatusWithReason(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat(what, "; raise the limit on open files (ulimit -n)"),
      "TOO_MANY_OPEN_FILES");
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

absl::StatusOr<std::optional<std::string>> ReadFile(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    if (errno == ENOENT) return std::nullopt;
    return FileError(errno, "can't open", path);
  }
  std::string bytes;
  char block[4096];
  while (true) {
    const ssize_t count = read(file.get(), block, sizeof(block));
    if (count == 0) return bytes;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(errno, "can't read", path);
    bytes.append(block, static_cast<std::size_t>(count));
  }
}

absl::Status ReplaceFile(const std::string& path, absl::string_view bytes) {
  const std::string temporary = absl::StrCat(path, kTemporarySuffix);
  absl::Status status;
  {
    ATTENDANT_ASSIGN_OR_RETURN(
        const FileDescriptor file,
        OpenFile(temporary, O_WRONLY | O_CREAT | O_TRUNC));
    status = WriteAll(file, bytes, temporary);
  }
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = FileError(errno, "can't rename to", path);
  }
  if (!status.ok()) {
    // It would take space from a disk that may be full.
    RemoveFile(temporary).IgnoreError();
    return status;
  }
  return SyncDirectory(std::filesystem::path(path).parent_path().string());
}

absl::Status MakeDirectory(const std::string& path) {
  if (PathExists(path)) return absl::OkStatus();
  const std::filesystem::path parent =
      std::filesystem::path(path).parent_path();
  if (!parent.empty() && parent != path) {
    ATTENDANT_RETURN_IF_ERROR(MakeDirectory(parent.string()));
  }
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
    return FileError(errno, "can't make", path);
  }
  return SyncDirectory(parent.empty() ? "." : parent.string());
}

absl::Status SyncDirectory(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(const FileDescriptor directory,
                             OpenFile(path, O_RDONLY | O_DIRECTORY));
  if (fsync(directory.get()) != 0) return FileError(errno, "can't sync", path);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ListDirectory(
    const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator at(path, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  while (!error && at != std::filesystem::directory_iterator()) {
    names.push_back(at->path().filename().string());
    at.increment(error);
  }
  if (error) return FileError(error.value(), "can't list", path);
  return names;
}

bool PathExists(const std::string& path) {
  struct stat ignored;
  return stat(path.c_str(), &ignored) == 0;
}

absl::Status RemoveFile(const std::string& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) return FileError(error.value(), "can't remove", path);
  return absl::OkStatus();
}

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return FileError(error.value(), "can't remove", path);
  return absl::OkStatus();
}

}  // namespace attendant
