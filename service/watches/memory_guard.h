// Chooses the connection to end where what clients send fills the memory.
#ifndef ATTENDANT_SERVICE_WATCHES_MEMORY_GUARD_H_
#define ATTENDANT_SERVICE_WATCHES_MEMORY_GUARD_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "core/base/clock.h"

namespace attendant {

// gRPC holds headers to their size from when a client acknowledges its
// settings, and tells nobody of a call before they are complete: one that never
// ends them fills the memory at the speed of the wire. Whenever the process
// holds more than it may and grows by kGrowth within kWindow, the connection
// that sent most in that time is ended, provided it sent at least one
// kMinShare-th of the growth: several may send at once, and a header takes up
// to twice its bytes. Not thread-safe.
class MemoryGuard {
 public:
  static constexpr std::int64_t kGrowth = std::int64_t{64} << 20;  // bytes
  static constexpr std::chrono::seconds kWindow{5};
  static constexpr std::int64_t kMinShare = 16;  // one so many-th

  struct Received {
    int connection = 0;
    std::int64_t bytes = 0;  // since it was opened
  };

  // Now and then, with what the process holds and may hold (0: anything), in
  // bytes. The connection to end, if there is one.
  // `now` does not go back.
  std::optional<int> Look(std::int64_t resident_bytes, std::int64_t limit_bytes,
                          std::span<const Received> received, SteadyTime now);

 private:
  void Begin(std::int64_t resident_bytes, std::span<const Received> received,
             SteadyTime now);

  bool over_ = false;
  SteadyTime begin_;  // since when growth is counted
  std::int64_t resident_bytes_ = 0;
  absl::flat_hash_map<int, std::int64_t> received_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_MEMORY_GUARD_H_
