// Chooses the connection to end where what clients send fills the memory.
#ifndef ATTENDANT_SERVICE_CONNECTIONS_MEMORY_GUARD_H_
#define ATTENDANT_SERVICE_CONNECTIONS_MEMORY_GUARD_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/container/flat_hash_map.h"

namespace attendant {

// gRPC holds headers to their size from when a client acknowledges its
// settings, and tells nobody of a call before they are complete: one that never
// ends them fills the memory at the speed of the wire. While the process holds
// more than it may, each kGrowth more cost the connection its life that sent
// most meanwhile. Not thread-safe.
class MemoryGuard {
 public:
  static constexpr std::int64_t kGrowth = std::int64_t{64} << 20;  // bytes

  struct Received {
    int connection = 0;
    std::int64_t bytes = 0;  // since it was opened
  };

  // Now and then, with what the process holds and may hold (0: anything), in
  // bytes. The connection to end, if there is one.
  std::optional<int> Look(std::int64_t resident_bytes, std::int64_t limit_bytes,
                          std::span<const Received> received);

 private:
  void Begin(std::int64_t resident_bytes, std::span<const Received> received);

  bool over_ = false;
  // Since when growth is counted.
  std::int64_t resident_bytes_ = 0;
  absl::flat_hash_map<int, std::int64_t> received_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_MEMORY_GUARD_H_
