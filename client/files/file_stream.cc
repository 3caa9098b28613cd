#include "client/files/file_stream.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "client/files/sync_directory.h"
#include "core/base/status.h"

namespace attendant {
namespace {

std::string PartialPath(const std::string& path) {
  return absl::StrCat(path, ".partial");
}

absl::Status SyncDirectoryOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return SyncDirectory(parent.empty() ? std::string(1, '.') : parent);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileStream>> FileStream::Create(
    const std::string& path) {
  if (std::filesystem::exists(path)) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is a file ", path, "; choose another name"));
  }
  std::FILE* const file = std::fopen(PartialPath(path).c_str(), "wbe");
  if (file == nullptr) return absl::ErrnoToStatus(errno, path);
  return std::unique_ptr<FileStream>(new FileStream(path, file));
}

FileStream::~FileStream() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  unlink(PartialPath(path_).c_str());
}

absl::Status FileStream::Append(absl::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size()) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, path_);
}

absl::Status FileStream::Commit() {
  if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0 ||
      rename(PartialPath(path_).c_str(), path_.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, path_);
  }
  const int closed = std::fclose(std::exchange(file_, nullptr));
  if (closed != 0) return absl::ErrnoToStatus(errno, path_);
  return SyncDirectoryOf(path_);
}

}  // namespace attendant
