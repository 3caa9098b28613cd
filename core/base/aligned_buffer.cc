#include "core/base/aligned_buffer.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace attendant {
namespace {

// Blocks of at least this size, one huge page, get a mapping of their own, so
// that freeing one returns it to the system at once, together with its advice
// for huge pages (PreferHugePages). On malloc's memory that advice would
// outlive the block: small blocks placed there later would hold 2 MiB each even
// when most of it is free.
constexpr std::size_t kOwnMappingBytes = std::size_t{2} << 20;
constexpr std::size_t kAlignment = 64;

std::atomic<std::int64_t> mapped_bytes = 0;

}  // namespace

std::int64_t MappedBufferBytes() { return mapped_bytes.load(); }

void* AllocateAligned(std::size_t bytes) {
  void* data = nullptr;
  if (bytes < kOwnMappingBytes) {
    data = std::aligned_alloc(
        kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  } else {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    mapped_bytes += static_cast<std::int64_t>(bytes);
  }
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

void FreeAligned(void* data, std::size_t bytes) {
  if (bytes < kOwnMappingBytes) {
    std::free(data);
  } else {
    munmap(data, bytes);
    mapped_bytes -= static_cast<std::int64_t>(bytes);
  }
}

}  // namespace attendant
