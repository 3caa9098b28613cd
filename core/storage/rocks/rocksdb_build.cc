#include "core/storage/rocks/rocksdb_build.h"

#include <rocksdb/version.h>

namespace attendant {

std::string RocksDbVersion() { return rocksdb::GetRocksVersionAsString(); }

}  // namespace attendant
