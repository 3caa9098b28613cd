// Resources that all databases of a store share.
#ifndef ATTENDANT_CORE_STORAGE_ROCKS_DATABASE_RESOURCES_H_
#define ATTENDANT_CORE_STORAGE_ROCKS_DATABASE_RESOURCES_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/storage/files/files.h"

namespace rocksdb {
class Cache;
class Env;
class WriteBufferManager;
}  // namespace rocksdb

namespace attendant {

struct DatabaseResources {
  std::shared_ptr<rocksdb::Cache> block_cache;
  std::shared_ptr<rocksdb::WriteBufferManager> write_buffers;
  // Bytes of the batches that are being written.
  std::shared_ptr<std::atomic<std::uint64_t>> bytes_under_way;
  Files files;
  std::shared_ptr<rocksdb::Env> env;  // over `files`

  static DatabaseResources Make(Files files = Files());
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_DATABASE_RESOURCES_H_
