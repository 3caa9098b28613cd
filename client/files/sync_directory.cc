#include "client/files/sync_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/base/file_descriptor.h"

namespace attendant {

absl::Status SyncDirectory(const std::string& directory) {
  const FileDescriptor opened(
      open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid() || fsync(opened.get()) != 0) {
    return absl::ErrnoToStatus(errno, directory);
  }
  return absl::OkStatus();
}

std::string DirectoryOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? std::string(1, '.') : parent;
}

}  // namespace attendant
