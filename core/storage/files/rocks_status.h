// What RocksDB's errors mean here.
#ifndef ATTENDANT_CORE_STORAGE_FILES_ROCKS_STATUS_H_
#define ATTENDANT_CORE_STORAGE_FILES_ROCKS_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rocksdb {
class Status;
}  // namespace rocksdb

namespace attendant {

// The errno behind an error, of those that FileError tells apart; else 0.
int ErrnoOf(const rocksdb::Status& status);

// Of work on the database in `directory`: as of FileError where there is an
// errno, DataLoss on damage, Internal otherwise.
absl::Status FromRocks(const rocksdb::Status& status,
                       absl::string_view directory);

// The same of opening it: FailedPrecondition if it is open already, and
// DataLoss if a file is missing that its manifest names.
absl::Status FromOpening(const rocksdb::Status& status,
                         absl::string_view directory);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_FILES_ROCKS_STATUS_H_
