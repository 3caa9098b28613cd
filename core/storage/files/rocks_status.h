// Converts RocksDB's errors.
#ifndef ATTENDANT_CORE_STORAGE_FILES_ROCKS_STATUS_H_
#define ATTENDANT_CORE_STORAGE_FILES_ROCKS_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rocksdb {
class Status;
}  // namespace rocksdb

namespace attendant {

// Returns the errno behind an error, if FileError distinguishes it; else 0.
int ErrnoOf(const rocksdb::Status& status);

// Converts an error of work on the database in `directory`: as FileError if
// there is an errno, DataLoss on damage, Internal otherwise.
absl::Status FromRocks(const rocksdb::Status& status,
                       absl::string_view directory);

// Converts an error of opening a database: as FromRocks, and FailedPrecondition
// if it is already open, DataLoss if a file is missing that its manifest names.
absl::Status FromOpening(const rocksdb::Status& status,
                         absl::string_view directory);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_FILES_ROCKS_STATUS_H_
