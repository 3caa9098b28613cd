// Opens RocksDB with this project's settings.
#ifndef ATTENDANT_CORE_STORAGE_ROCKS_OPEN_ROCKS_H_
#define ATTENDANT_CORE_STORAGE_ROCKS_OPEN_ROCKS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/storage/rocks/database_resources.h"

namespace rocksdb {
class DB;
}  // namespace rocksdb

namespace attendant {

// All functions return the errors of FromOpening, and DataLoss if a table that
// the database needs would end the process (see CheckTableProperties).

// Opens a database for writing. `create_if_missing` is only for a directory
// that never held a database: if RocksDB finds none, it creates one and deletes
// what is there.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenRocks(
    const std::string& directory, const DatabaseResources& resources,
    bool create_if_missing);

// Opens a database without writing anything.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenReader(
    const std::string& directory, const DatabaseResources& resources);

// Returns RocksDB's number of the last write that is in a table, as recorded in
// the manifest; no table and no log is read.
absl::StatusOr<std::uint64_t> LastNumberInTables(
    const std::string& directory, const DatabaseResources& resources);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_OPEN_ROCKS_H_
