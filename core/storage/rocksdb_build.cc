#include "core/storage/rocksdb_build.h"

#include <rocksdb/version.h>

namespace attendant {

std::string RocksDbVersion() { return rocksdb::GetRocksVersionAsString(); }

}  // namespace attendant
