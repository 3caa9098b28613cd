// Chooses the connections to end whose calls take too much memory, or whose
// calls do not come.
#ifndef ATTENDANT_SERVICE_WATCHES_CALL_WATCH_H_
#define ATTENDANT_SERVICE_WATCHES_CALL_WATCH_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace attendant {

// A call takes some 20 KB of gRPC while it is open, whatever it does; watches
// of health, which ask for no token, may be as many as all connections together
// may have. So calls may take an eighth of --memory-limit, but as many as four
// connections may have at once are always let be. Beyond that the host with
// most of them loses its connection with most.
//
// Nobody is told of a unary call before its message is whole; until then gRPC
// holds what has come of it against --request-memory, where it keeps out what
// others send. A connection on which calls have begun and no message at all
// comes for `stall_time`, and a second for each 64 KiB of a largest message, is
// ended, unless it keeps sending 64 KiB a second, as of many large messages at
// once, or did within the last `stall_time`. What it does not see: who
// completes a small call now and then, or sends so much without end, may hold
// others half sent for as long as the connection may live: --request-memory
// bounds what all of these hold.
//
// Not thread-safe.
class CallWatch {
 public:
  // About, and with what an allocator adds.
  static constexpr std::int64_t kBytesPerCall = 20 << 10;
  static constexpr std::int64_t kShareOfMemory = 8;  // one part in so many
  // Who sends a message more slowly takes too long.
  static constexpr std::int64_t kMinBytesPerSecond = 64 << 10;

  struct Options {
    absl::Duration stall_time = absl::InfiniteDuration();
    std::int64_t max_message_bytes = 0;
    int max_stream_count = 0;  // calls that a connection may have at once
  };

  struct Connection {
    std::string peer;  // its name
    std::string host;
    std::int64_t open_count = 0;  // calls that have begun, and not ended
    // Those of them that the server was told of.
    std::int64_t known_count = 0;
    std::int64_t message_count = 0;   // that came whole since it was opened
    std::int64_t received_bytes = 0;  // since it was opened
  };

  explicit CallWatch(const Options& options) : options_(options) {}

  // Calls that may be open; `limit_bytes`: of the process, 0: any.
  std::int64_t MostCalls(std::int64_t limit_bytes) const;

  // The names of those to end so that no more than `most_calls` are open.
  static std::vector<std::string> Crowding(
      std::span<const Connection> connections, std::int64_t most_calls);

  // Now and then, with all connections, at `now`, which does not go back: the
  // names of those to end as their calls don't come.
  std::vector<std::string> Silent(std::span<const Connection> connections,
                                  SteadyTime now);

 private:
  // A connection of which calls wait for their messages.
  struct Waiting {
    SteadyTime since;
    std::int64_t message_count = 0;  // that had come then
    SteadyTime in_time;  // when it was last found to send fast enough
    std::int64_t received_bytes = 0;  // until then
  };

  const Options options_;
  absl::flat_hash_map<std::string, Waiting> waiting_;  // by name
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_CALL_WATCH_H_
