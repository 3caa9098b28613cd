#include "client/doctor/data_directory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/doctor/stored_files.h"
#include "client/doctor/user_name.h"
#include "client/format/text.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/storage/files/data_directory.h"
#include "core/storage/files/files.h"

namespace attendant {
namespace {

constexpr std::uint64_t kLittleSpace = std::uint64_t{1} << 30;
constexpr std::uint64_t kNoSpace = std::uint64_t{64} << 20;
constexpr double kLittleShare = 0.1;
constexpr int kSyncCount = 5;
constexpr absl::Duration kSlowSync = absl::Milliseconds(20);

// Returns the directory, or its nearest parent that exists.
std::filesystem::path Existing(const std::string& path) {
  std::error_code error;
  std::filesystem::path at = std::filesystem::absolute(path, error);
  while (!std::filesystem::exists(at, error) && at.has_relative_path()) {
    at = at.parent_path();
  }
  return at;
}

// Says why this process can't use a directory, and who can.
Finding AccessRefused(const std::string& path,
                      const std::filesystem::path& existing, bool exists) {
  const int error = errno;
  Finding finding = {
      .subject = "directory",
      .verdict = Verdict::kFailure,
      .text = absl::StrCat(existing.string(), ": ", std::strerror(error))};
  struct stat status;
  if (error != EACCES || stat(existing.c_str(), &status) != 0) {
    finding.advice = "see to the disk and its file system";
  } else if (!exists) {
    finding.advice = absl::StrCat(
        "make it for the user that runs attendantd: install -d -m 0750 -o "
        "attendant ",
        path);
  } else if (status.st_uid == geteuid()) {
    finding.advice =
        absl::StrCat("let its owner in: chmod u+rwx ", path,
                     "; or make it another's: chown -R USER ", path);
  } else {
    // That is as it should be: only attendantd's user may read its files.
    const std::string owner = UserName(status.st_uid);
    finding.verdict = Verdict::kWarning;
    absl::StrAppend(&finding.text, ", as it is ", owner, "'s");
    finding.advice = absl::StrCat("run as its owner: sudo -u ", owner,
                                  " attendant doctor --data-dir ", path);
  }
  return finding;
}

Finding ExamineAccess(const std::string& path,
                      const std::filesystem::path& existing) {
  Finding finding = {.subject = "directory"};
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  if (!std::filesystem::is_directory(existing, error)) {
    finding.verdict = Verdict::kFailure;
    finding.text = absl::StrCat(existing.string(), " is no directory");
    finding.advice = "choose another with --data-dir";
  } else if (faccessat(AT_FDCWD, existing.c_str(), R_OK | W_OK | X_OK,
                       AT_EACCESS) != 0) {
    return AccessRefused(path, existing, exists);
  } else {
    finding.text = exists ? "there, and can be written to"
                          : "not there yet; attendantd will make it";
  }
  return finding;
}

Finding ExamineFormat(const std::string& path) {
  const auto version = DataDirectory::FormatVersionOf(path, Files());
  if (!version.ok()) {
    std::string advice;  // one that is too new says what to do
    if (absl::IsDataLoss(version.status())) {
      advice = "restore the directory from a backup";
    } else if (ReasonOf(version.status()) == kFilesNotAccessible) {
      advice = "run this as the user that runs attendantd";
    }
    return {"format", Verdict::kFailure,
            std::string(version.status().message()), advice};
  }
  if (!version->has_value()) {
    return {.subject = "format", .text = "none: nothing was stored yet"};
  }
  return {.subject = "format", .text = absl::StrCat("version ", **version)};
}

// Returns the id of the process that has locked the file, from the kernel's
// list, or 0. Trying to take the lock could keep a server from starting.
std::int64_t LockHolder(const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) return 0;
  const std::string id =
      absl::StrFormat("%02x:%02x:%d", major(file.st_dev), minor(file.st_dev),
                      std::uint64_t{file.st_ino});
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access_kind, locked;
    std::int64_t pid = 0;
    words >> number >> kind >> mode >> access_kind >> pid >> locked;
    if (words && kind == "FLOCK" && locked == id) return pid;
  }
  return 0;
}

Finding ExamineHolder(const std::string& path, bool server_answers) {
  const std::int64_t pid = HolderOf(path);
  if (pid == 0 && server_answers) {
    return {"held by", Verdict::kWarning, "nobody, though the server answers",
            "the server has another directory: see its --data-dir"};
  }
  return {.subject = "held by",
          .text = pid == 0 ? "nobody" : absl::StrCat("process ", pid)};
}

Finding ExamineSpace(const std::filesystem::path& existing) {
  struct statvfs stats;
  if (statvfs(existing.c_str(), &stats) != 0 || stats.f_blocks == 0) {
    return {"space", Verdict::kWarning, "the file system does not tell", ""};
  }
  const std::uint64_t total = std::uint64_t{stats.f_blocks} * stats.f_frsize;
  const std::uint64_t free = std::uint64_t{stats.f_bavail} * stats.f_frsize;
  Finding finding = {
      .subject = "space",
      .text = absl::StrCat(FormatBytes(static_cast<std::int64_t>(free)),
                           " free of ",
                           FormatBytes(static_cast<std::int64_t>(total)))};
  const bool little =
      free < kLittleSpace ||
      static_cast<double>(free) < kLittleShare * static_cast<double>(total);
  if (free < kNoSpace) {
    finding.verdict = Verdict::kFailure;
    finding.advice = "free some, or writes are refused";
  } else if (little) {
    finding.verdict = Verdict::kWarning;
    finding.advice =
        "free some before it is full: writes are refused then, and queries go "
        "on";
  }
  return finding;
}

Finding ExamineFileSystem(const std::filesystem::path& existing) {
  struct statfs stats;
  if (statfs(existing.c_str(), &stats) != 0) {
    return {"file system", Verdict::kWarning,
            absl::StrCat("not known: ", std::strerror(errno)), ""};
  }
  switch (static_cast<std::uint64_t>(stats.f_type)) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
      return {"file system", Verdict::kWarning, "in memory",
              "everything stored is lost with the machine: use a directory on "
              "a disk"};
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case 0xff534d42:  // CIFS
      return {"file system", Verdict::kWarning, "on a network",
              "locks and syncs of network file systems are unreliable: use a "
              "directory on a local disk"};
    case OVERLAYFS_SUPER_MAGIC:
      return {"file system", Verdict::kWarning, "a container's own layer",
              "everything stored is lost with the container: mount a volume"};
    default:
      return {.subject = "file system", .text = "local"};
  }
}

// Returns the median of several syncs, or nothing if a file can't be written.
std::optional<absl::Duration> SyncTime(const std::filesystem::path& existing) {
  const std::string path =
      (existing / absl::StrCat(".doctor-", getpid())).string();
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return std::nullopt;
  unlink(path.c_str());
  const std::string block(4096, 'x');
  std::vector<absl::Duration> times;
  for (int i = 0; i < kSyncCount; ++i) {
    const SteadyTime begin = SteadyNow();
    const bool synced = write(fd, block.data(), block.size()) ==
                            static_cast<ssize_t>(block.size()) &&
                        fdatasync(fd) == 0;
    if (!synced) break;
    times.push_back(TimeSince(begin));
  }
  close(fd);
  if (times.size() < kSyncCount) return std::nullopt;
  std::ranges::sort(times);
  return times[kSyncCount / 2];
}

Finding ExamineSync(const std::filesystem::path& existing) {
  const std::optional<absl::Duration> time = SyncTime(existing);
  if (!time.has_value()) {
    return {"sync", Verdict::kFailure, "a file can't be written and synced",
            "see to the disk, its space and its rights"};
  }
  Finding finding = {
      .subject = "sync",
      .text = absl::StrFormat("%.3g ms, which each write waits for",
                              absl::ToDoubleMilliseconds(*time))};
  if (*time > kSlowSync) {
    finding.verdict = Verdict::kWarning;
    finding.advice =
        "take a faster disk, or write in batches and imports, which share "
        "syncs";
  }
  return finding;
}

}  // namespace

std::int64_t HolderOf(const std::string& path) {
  return LockHolder(path + "/LOCK");
}

std::vector<Finding> ExamineDataDirectory(const std::string& path,
                                          bool server_answers) {
  const std::filesystem::path existing = Existing(path);
  std::vector<Finding> findings = {ExamineAccess(path, existing)};
  if (findings[0].verdict != Verdict::kOk) return findings;
  findings.push_back(ExamineFormat(path));
  findings.push_back(ExamineHolder(path, server_answers));
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    findings.push_back(ExamineStoredFiles(path));
  }
  findings.push_back(ExamineSpace(existing));
  findings.push_back(ExamineFileSystem(existing));
  findings.push_back(ExamineSync(existing));
  return findings;
}

}  // namespace attendant
