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

// Delays signals that would end the process while an object lives.
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

absl::Status Write(const std::string& path, const std::string& content,
                   bool sync) {
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
  if (error == 0 && sync && fsync(fd) != 0) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(error, path);
}

// True for a device or a pipe, which must not be replaced by a file.
bool IsWrittenInPlace(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) &&
         !std::filesystem::is_regular_file(path, error) &&
         !std::filesystem::is_directory(path, error);
}

// Resolves symbolic links, if their target exists.
std::string TargetOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

absl::Status WriteAll(const std::string& directory,
                      const std::vector<OutputFile>& files) {
  for (const OutputFile& file : files) {
    const std::string path = absl::StrCat(directory, "/", file.name);
    ATTENDANT_RETURN_IF_ERROR(
        Write(AsidePath(path), file.content, /*sync=*/true));
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

absl::Status CheckWritableFile(const std::string& path) {
  if (std::error_code error; std::filesystem::is_directory(path, error)) {
    return absl::ErrnoToStatus(EISDIR, path);
  }
  const bool in_place = IsWrittenInPlace(path);
  const std::string written = in_place ? path : DirectoryOf(TargetOf(path));
  if (access(written.c_str(), in_place ? W_OK : W_OK | X_OK) != 0) {
    return absl::ErrnoToStatus(errno, path);
  }
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& path, const std::string& content) {
  if (IsWrittenInPlace(path)) return Write(path, content, /*sync=*/false);
  const std::string target = TargetOf(path);
  const std::string aside = AsidePath(target);
  const SignalsHeld held;
  absl::Status status = Write(aside, content, /*sync=*/true);
  if (status.ok() && std::rename(aside.c_str(), target.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, path);
  }
  if (!status.ok()) {
    unlink(aside.c_str());
    return status;
  }
  return SyncDirectory(DirectoryOf(target));
}

absl::Status CheckWritableDirectory(const std::string& directory) {
  std::error_code error;
  std::filesystem::path existing = std::filesystem::absolute(directory, error);
  if (error) return absl::ErrnoToStatus(error.value(), directory);
  // Missing directories are created in the nearest existing parent.
  while (access(existing.c_str(), F_OK) != 0 && errno == ENOENT) {
    existing = existing.parent_path();
  }
  const std::string path = existing;
  // The slash makes access() fail unless it is a directory.
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
