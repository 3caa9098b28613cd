#include "core/storage/files/disk_space.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/storage/files/files.h"

namespace attendant {
namespace {

// Two write buffers that become tables, and 1 MiB for small files.
constexpr std::uint64_t kReserveBytes = std::uint64_t{33} << 20;
// The reserve is at most 1 / this of the file system, so that one of a few MiB
// can be used too.
constexpr std::uint64_t kMinReserveShare = 16;
// 1 / this of the reserve is left when it is used.
constexpr std::uint64_t kUsedShare = 8;

// Disk space in bytes.
struct DiskSpace {
  std::uint64_t total = 0;  // 0: not reported
  std::uint64_t free = 0;
};

absl::StatusOr<DiskSpace> SpaceOf(const std::string& path) {
  std::filesystem::path at = path;
  struct statvfs stats;
  while (statvfs(at.c_str(), &stats) != 0) {
    const int error = errno;
    if (error != ENOENT || !at.has_relative_path()) {
      return FileError(error, "can't tell the free space of", path);
    }
    at = at.has_parent_path() ? at.parent_path() : ".";
  }
  return DiskSpace{std::uint64_t{stats.f_blocks} * stats.f_frsize,
                   std::uint64_t{stats.f_bavail} * stats.f_frsize};
}

}  // namespace

absl::Status CheckDiskSpace(const std::string& path, std::uint64_t bytes,
                            DiskReserve reserve) {
  ATTENDANT_ASSIGN_OR_RETURN(const DiskSpace space, SpaceOf(path));
  const auto [total, free] = space;
  std::uint64_t kept = std::min(kReserveBytes, total / kMinReserveShare);
  if (reserve == DiskReserve::kUsed) kept /= kUsedShare;
  const std::uint64_t wanted = bytes + kept;
  if (total == 0 || free >= wanted) return absl::OkStatus();
  return StatusWithReason(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat("the disk of ", path, " is full: ", free,
                   " bytes are free and ", wanted,
                   " wanted; writes resume when there is space again"),
      kDiskFull);
}

absl::StatusOr<std::uint64_t> FreeDiskBytes(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(const DiskSpace space, SpaceOf(path));
  if (space.total == 0) return std::numeric_limits<std::uint64_t>::max();
  return space.free;
}

}  // namespace attendant
