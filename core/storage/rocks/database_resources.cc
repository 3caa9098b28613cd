#include "core/storage/rocks/database_resources.h"

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/write_buffer_manager.h>

#include <cstddef>
#include <utility>

namespace attendant {
namespace {

// Bytes of the block cache, and of the write buffers.
constexpr std::size_t kSharedBytes = std::size_t{64} << 20;

}  // namespace

DatabaseResources DatabaseResources::Make(Files files) {
  DatabaseResources resources;
  resources.env = rocksdb::NewCompositeEnv(files.file_system());
  // Applies to the whole process: compaction must not delay queries.
  resources.env->LowerThreadPoolCPUPriority(rocksdb::Env::LOW,
                                            rocksdb::CpuPriority::kLow);
  resources.files = std::move(files);
  resources.block_cache = rocksdb::NewLRUCache(kSharedBytes);
  resources.write_buffers =
      std::make_shared<rocksdb::WriteBufferManager>(kSharedBytes);
  resources.bytes_under_way = std::make_shared<std::atomic<std::uint64_t>>(0);
  return resources;
}

}  // namespace attendant
