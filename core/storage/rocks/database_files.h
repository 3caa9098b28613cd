// What is looked at in the files of a database, and mended.
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

// Errors beside those that are named are those of Files. Who changes a file is
// alone with it.

// RocksDB takes a directory without CURRENT for a new database and deletes the
// files that it finds there. DataLoss if one is there that was a database.
absl::Status CheckCurrent(const std::string& directory, bool must_exist,
                          const Files& files);

// Of all logs together, which opening writes to tables.
absl::StatusOr<std::uint64_t> LogBytes(const std::string& directory,
                                       const Files& files);

// The number in MANIFEST-NUMBER, or 0.
std::uint64_t ManifestNumber(absl::string_view name);

// Of the first `size` bytes of a manifest; nothing if it has less.
absl::StatusOr<std::optional<std::uint64_t>> HashManifest(
    const std::string& directory, const Files& files, std::uint64_t number,
    std::uint64_t size);

// RocksDB drops the end of a manifest from a damaged length on, and deletes the
// tables that it then does not know. DataLoss if it is not what it was.
absl::Status CheckManifest(const std::string& directory, const Files& files,
                           const Acknowledged& acknowledged);

// RocksDB's numbers of the last write that is whole in a log, and of the first
// from which on none is missing; 0 if none is. DataLoss if a log has a write
// behind one that is not whole, or one that does not go on where that before it
// ends, or goes back behind the log before.
struct LogNumbers {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};
absl::StatusOr<LogNumbers> NumbersInLogs(const std::string& directory,
                                         const Files& files);

// Both cut off what a power cut left of a last write that was never synced, if
// it left any (see FindTornTail). The log, where that is so, is the last one
// that is not empty: before a write to another, it is synced. True if it was.
absl::Status CutTornManifest(const std::string& directory, const Files& files);
absl::StatusOr<bool> CutTornLog(const std::string& directory,
                                const Files& files);

// Cuts the writes off the logs whose numbers, which are RocksDB's, are beyond
// this one: those that failed, and reached them all the same. Goes from the
// last log, behind which an empty one may have been begun, back to one that has
// this number or one before. These logs are other files afterwards, whatever
// they held: who still has those before open writes nothing that counts.
// DataLoss, with nothing cut, if one is damaged before such writes.
absl::Status CutWritesAfter(const std::string& directory, const Files& files,
                            std::uint64_t number);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_DATABASE_FILES_H_
