// Checks what RocksDB does not check in its tables.
#ifndef ATTENDANT_CORE_STORAGE_ROCKS_TABLE_PROPERTIES_H_
#define ATTENDANT_CORE_STORAGE_ROCKS_TABLE_PROPERTIES_H_

#include <string>

#include "absl/status/status.h"
#include "core/storage/files/files.h"

namespace attendant {

// OK if the properties block of a table is what RocksDB wrote. RocksDB parses
// that block before it verifies the checksum, and ends the process if it makes
// no sense; it verifies all other blocks first. Otherwise DataLoss, saying what
// is wrong, or an error of Files. Thread-safe.
//
// A table is a sequence of blocks, each with a trailer (compression: 1 byte,
// checksum: 4), and a footer that locates the block that locates the others.
// This reads tables of format 5 with XXH3, which Debian 12's RocksDB writes.
absl::Status CheckTableProperties(const Files& files, const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_TABLE_PROPERTIES_H_
