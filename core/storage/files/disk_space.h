// Refuses what a nearly full disk might not hold, before it is begun.
#ifndef ATTENDANT_CORE_STORAGE_FILES_DISK_SPACE_H_
#define ATTENDANT_CORE_STORAGE_FILES_DISK_SPACE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace attendant {

enum class DiskReserve {
  kKept,
  kUsed,  // most of it, by what is small and lets space be freed
};

// OK if the file system of `path`, which need not exist yet, has `bytes` free
// beside a reserve for what RocksDB writes on its own account: tables, manifest
// and the like. The reserve is a few tens of MiB, less where that would be more
// than a small share of the file system. Otherwise ResourceExhausted, with
// reason DISK_FULL and both numbers. A file system that doesn't tell has space.
//
// RocksDB must not meet a full disk: it may be built with assertions, as
// Debian's is, and then aborts the process when it goes on with a file that
// could not be written.
absl::Status CheckDiskSpace(const std::string& path, std::uint64_t bytes,
                            DiskReserve reserve = DiskReserve::kKept);

// What a write of `bytes` may come to: its log, its table, and the tables that
// all write buffers may become at any time.
inline std::uint64_t RoomOfWrite(std::uint64_t bytes,
                                 std::uint64_t buffer_bytes) {
  return 2 * bytes + buffer_bytes;
}

// Bytes of the file system of `path`, which need not exist yet, that are free
// for us; the largest number if it doesn't tell. Errors of asking it, as
// FileError.
absl::StatusOr<std::uint64_t> FreeDiskBytes(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_FILES_DISK_SPACE_H_
