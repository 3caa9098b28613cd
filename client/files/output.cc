#include "client/files/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/files/signals.h"
#include "client/files/sync_directory.h"
#include "core/base/status.h"

namespace attendant {
namespace {

volatile std::sig_atomic_t held_signal = 0;

void HoldSignal(int number) { held_signal = number; }

// Signals that would end the process wait while an object lives.
class SignalsHeld {
 public:
  SignalsHeld() {
    held_signal = 0;
    caught_.emplace(&HoldSignal);
  }
  ~SignalsHeld() {
    caught_.reset();
    if (held_signal != 0) std::raise(held_signal);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  std::optional<SignalsCaught> caught_;
};

absl::Status WriteAndSync(const std::string& path, const std::string& content) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  int error = 0;
  std::size_t done = 0;
  while (error == 0 && done < content.size()) {
    const ssize_t count =
        write(fd, content.data() + done, content.size() - done);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (error == 0 && fsync(fd) != 0) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(error, path);
}

absl::Status WriteAll(const std::string& directory,
                      const std::vector<OutputFile>& files) {
  for (const OutputFile& file : files) {
    const std::string path = absl::StrCat(directory, "/", file.name);
    ATTENDANT_RETURN_IF_ERROR(WriteAndSync(AsidePath(path), file.content));
  }
  const std::string last = absl::StrCat(directory, "/", files.back().name);
  if (unlink(last.c_str()) != 0 && errno != ENOENT) {
    return absl::ErrnoToStatus(errno, last);
  }
  for (const OutputFile& file : files) {
    const std::string path = absl::StrCat(directory, "/", file.name);
    if (std::rename(AsidePath(path).c_str(), path.c_str()) != 0) {
      return absl::ErrnoToStatus(errno, path);
    }
  }
  return SyncDirectory(directory);
}

}  // namespace

std::string AsidePath(const std::string& path) {
  return absl::StrCat(path, ".partial-", getpid());
}

absl::Status CheckWritableDirectory(const std::string& directory) {
  std::error_code error;
  std::filesystem::path existing = std::filesystem::absolute(directory, error);
  if (error) return absl::ErrnoToStatus(error.value(), directory);
  // What is missing is made within the first parent that is there.
  while (access(existing.c_str(), F_OK) != 0 && errno == ENOENT) {
    existing = existing.parent_path();
  }
  const std::string path = existing;
  // With the slash it has to be a directory.
  if (access((path + "/").c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(
      errno, directory == path
                 ? directory
                 : absl::StrCat(directory, ": can't be made in ", path));
}

absl::Status WriteDirectory(const std::string& directory,
                            const std::vector<OutputFile>& files) {
  const SignalsHeld held;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return absl::ErrnoToStatus(error.value(), directory);
  const absl::Status status = WriteAll(directory, files);
  if (!status.ok()) {
    for (const OutputFile& file : files) {
      unlink(AsidePath(absl::StrCat(directory, "/", file.name)).c_str());
    }
  }
  return status;
}

}  // namespace attendant
