#include "client/files/file_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/files/output.h"
#include "client/files/sync_directory.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// The aside path of the one open stream, for the signal handler.
const char* volatile aside_path = nullptr;

// Removes the file and ends the process as the signal would have.
void RemoveAside(int number) {
  unlink(aside_path);
  std::signal(number, SIG_DFL);
  std::raise(number);
}

absl::Status IsThere(const std::string& path) {
  return absl::AlreadyExistsError(
      absl::StrCat("there is a file ", path, "; choose another name"));
}

// Renames without replacing a file, if the file system supports that. Returns
// errno, or 0 on success.
int MoveToNewName(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(),
                RENAME_NOREPLACE) == 0) {
    return 0;
  }
  if (errno != EINVAL) return errno;
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileStream>> FileStream::Create(
    const std::string& path) {
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  if (error) return absl::ErrnoToStatus(error.value(), path);
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is a directory; add the name of a file"));
  }
  if (exists) return IsThere(path);
  std::unique_ptr<FileStream> stream(new FileStream(path));
  stream->file_ = std::fopen(stream->aside_.c_str(), "wbe");
  if (stream->file_ == nullptr) return absl::ErrnoToStatus(errno, path);
  return stream;
}

FileStream::FileStream(std::string path)
    : path_(std::move(path)), aside_(AsidePath(path_)) {
  aside_path = aside_.c_str();
  signals_.emplace(&RemoveAside);
}

FileStream::~FileStream() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  unlink(aside_.c_str());
}

absl::Status FileStream::Append(absl::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size()) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, path_);
}

absl::Status FileStream::Commit() {
  if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) {
    return absl::ErrnoToStatus(errno, path_);
  }
  if (const int error = MoveToNewName(aside_, path_); error != 0) {
    return error == EEXIST ? IsThere(path_) : absl::ErrnoToStatus(error, path_);
  }
  const int closed = std::fclose(std::exchange(file_, nullptr));
  if (closed != 0) return absl::ErrnoToStatus(errno, path_);
  return SyncDirectory(DirectoryOf(path_));
}

}  // namespace attendant
