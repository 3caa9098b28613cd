// Refuses work that a nearly full disk might not hold, before it begins.
#ifndef ATTENDANT_CORE_STORAGE_FILES_DISK_SPACE_H_
#define ATTENDANT_CORE_STORAGE_FILES_DISK_SPACE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace attendant {

enum class DiskReserve {
  kKept,
  kUsed,  // may use most of it: small work that lets space be freed
};

// OK if the file system of `path`, which need not exist yet, has `bytes` free
// in addition to a reserve for RocksDB's own writes (tables, manifest and the
// like). The reserve is a few tens of MiB, or a small share of the file system
// if that is less. Otherwise ResourceExhausted with reason DISK_FULL and both
// numbers. A file system that doesn't report its space counts as having enough.
//
// RocksDB must not meet a full disk: if built with assertions, as Debian's is,
// it aborts the process when it continues with a file that could not be
// written.
absl::Status CheckDiskSpace(const std::string& path, std::uint64_t bytes,
                            DiskReserve reserve = DiskReserve::kKept);

// Returns the most bytes that a write of `bytes` may take: its log, its table,
// and the tables that all write buffers may become at any time.
inline std::uint64_t RoomOfWrite(std::uint64_t bytes,
                                 std::uint64_t buffer_bytes) {
  return 2 * bytes + buffer_bytes;
}

// Returns the bytes free for us on the file system of `path`, which need not
// exist yet; the largest number if it doesn't report them. Errors as for
// FileError.
absl::StatusOr<std::uint64_t> FreeDiskBytes(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_FILES_DISK_SPACE_H_
