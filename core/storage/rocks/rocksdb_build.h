// Identifies the RocksDB in use.
#ifndef ATTENDANT_CORE_STORAGE_ROCKS_ROCKSDB_BUILD_H_
#define ATTENDANT_CORE_STORAGE_ROCKS_ROCKSDB_BUILD_H_

#include <string>

namespace attendant {

// Returns the linked version, as "7.8.3".
std::string RocksDbVersion();

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_ROCKSDB_BUILD_H_
