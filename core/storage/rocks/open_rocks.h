// How RocksDB is opened here.
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

// Errors of all as of FromOpening, and DataLoss if a table that the database
// needs would end the process (see CheckTableProperties).

// For writing. RocksDB makes a database where it finds none, and deletes what
// lies there: only where there was none is it to.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenRocks(
    const std::string& directory, const DatabaseResources& resources,
    bool create_if_missing);

// Writes nothing at all.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenReader(
    const std::string& directory, const DatabaseResources& resources);

// RocksDB's number of the last write that is in a table, by the manifest: no
// table and no log is looked into.
absl::StatusOr<std::uint64_t> LastNumberInTables(
    const std::string& directory, const DatabaseResources& resources);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_OPEN_ROCKS_H_
