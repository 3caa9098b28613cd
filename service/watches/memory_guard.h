// Chooses a connection to end when data from clients fills the memory.
#ifndef ATTENDANT_SERVICE_WATCHES_MEMORY_GUARD_H_
#define ATTENDANT_SERVICE_WATCHES_MEMORY_GUARD_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "core/base/clock.h"

namespace attendant {

// gRPC limits the size of headers only once the client has acknowledged its
// settings, and does not tell the server of a call before its headers are
// complete: a client that never ends them fills the memory at wire speed.
// Whenever the process holds more than its limit and grows by kGrowth within
// kWindow, the connection that sent the most in that time is ended, provided it
// sent at least 1/kMinShare of the growth: several may send at once, and a
// header takes up to twice its size. Not thread-safe.
class MemoryGuard {
 public:
  static constexpr std::int64_t kGrowth = std::int64_t{64} << 20;  // bytes
  static constexpr std::chrono::seconds kWindow{5};
  static constexpr std::int64_t kMinShare = 16;  // the reciprocal of the share

  struct Received {
    int connection = 0;
    std::int64_t bytes = 0;  // since it was opened
  };

  // Call periodically with the memory that the process holds and its limit (0:
  // unlimited), in bytes. Returns the connection to end, if any. `now` must not
  // decrease.
  std::optional<int> Look(std::int64_t resident_bytes, std::int64_t limit_bytes,
                          std::span<const Received> received, SteadyTime now);

 private:
  void Begin(std::int64_t resident_bytes, std::span<const Received> received,
             SteadyTime now);

  bool over_ = false;
  SteadyTime begin_;  // start of the growth measurement
  std::int64_t resident_bytes_ = 0;
  absl::flat_hash_map<int, std::int64_t> received_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_MEMORY_GUARD_H_
