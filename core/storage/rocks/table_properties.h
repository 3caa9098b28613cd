// What RocksDB does not check of its tables.
#ifndef ATTENDANT_CORE_STORAGE_ROCKS_TABLE_PROPERTIES_H_
#define ATTENDANT_CORE_STORAGE_ROCKS_TABLE_PROPERTIES_H_

#include <string>

#include "absl/status/status.h"
#include "core/storage/files/files.h"

namespace attendant {

// OK if the block of a table's properties is what RocksDB wrote. RocksDB takes
// that one apart before it compares its checksum, and ends the process if it
// makes no sense; all others it checks first. DataLoss, saying what is wrong,
// or an error of Files. Thread-safe.
//
// A table is blocks of bytes, each with a trailer (compression: 1 byte,
// checksum: 4), and a footer that says where the block lies that says where the
// others lie. Read are tables of format 5 with XXH3, which Debian 12's RocksDB
// writes.
absl::Status CheckTableProperties(const Files& files, const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_TABLE_PROPERTIES_H_
