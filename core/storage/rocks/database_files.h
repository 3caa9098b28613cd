// Checks and repairs the files of a database.
#ifndef ATTENDANT_CORE_STORAGE_ROCKS_DATABASE_FILES_H_
#define ATTENDANT_CORE_STORAGE_ROCKS_DATABASE_FILES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/storage/files/files.h"
#include "core/storage/rocks/acknowledged.h"

namespace attendant {

// Errors not named below are those of Files. A function that changes a file
// needs exclusive access to it.

// Returns DataLoss if a directory without CURRENT holds files of a database:
// RocksDB would take it for a new database and delete them.
absl::Status CheckCurrent(const std::string& directory, bool must_exist,
                          const Files& files);

// Returns the bytes of all logs together, which opening writes to tables.
absl::StatusOr<std::uint64_t> LogBytes(const std::string& directory,
                                       const Files& files);

// Returns the number in MANIFEST-NUMBER, or 0.
std::uint64_t ManifestNumber(absl::string_view name);

// Returns the hash of the first `size` bytes of a manifest; nothing if it is
// shorter.
absl::StatusOr<std::optional<std::uint64_t>> HashManifest(
    const std::string& directory, const Files& files, std::uint64_t number,
    std::uint64_t size);

// Returns DataLoss if the manifest is not what was acknowledged: RocksDB drops
// the rest of a manifest from a damaged length on, and deletes the tables that
// it then does not know.
absl::Status CheckManifest(const std::string& directory, const Files& files,
                           const Acknowledged& acknowledged);

// RocksDB's numbers in the logs: `last` is that of the last complete write;
// `first` is the first number from which on none is missing. Both are 0 if
// there is no complete write. DataLoss if a log other than the last has a write
// after an incomplete one, a log has a gap between two writes, or a write has
// lower numbers than the one before it.
struct LogNumbers {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};
absl::StatusOr<LogNumbers> NumbersInLogs(const std::string& directory,
                                         const Files& files);

// Both cut off what a power failure left of a last write that was never synced,
// if anything (see FindTornTail). Only the last log that is not empty can have
// such a write: each log is synced before another is written. CutTornLog
// returns true if it cut the log.
absl::Status CutTornManifest(const std::string& directory, const Files& files);
absl::StatusOr<bool> CutTornLog(const std::string& directory,
                                const Files& files);

// Cuts off the logs all writes with RocksDB numbers above `number`, which
// failed but reached the logs all the same. Goes from the last log, which may
// be a new empty one, back to a log with this number or a lower one. The logs
// are then new files, even with the same content: nothing written by those who
// have the old ones open counts. DataLoss, with nothing cut, if a log is
// damaged before such writes.
absl::Status CutWritesAfter(const std::string& directory, const Files& files,
                            std::uint64_t number);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_DATABASE_FILES_H_
