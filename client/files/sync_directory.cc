#include "client/files/sync_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace attendant {

absl::Status SyncDirectory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, directory);
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  if (error != 0) return absl::ErrnoToStatus(error, directory);
  return absl::OkStatus();
}

}  // namespace attendant
