// Chooses connections to end because their calls take too much memory or do not
// arrive.
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

// An open call takes about 20 KB of gRPC's memory, whatever it does, and health
// watches, which need no token, may be as many as all connections together may
// have calls. So open calls may take an eighth of --memory-limit, but always as
// many as four connections may have at once. Beyond that, the host with the
// most calls loses its connection with the most.
//
// The server is not told of a unary call before its message is complete; until
// then gRPC counts what has arrived against --request-memory, where it
// displaces other clients' requests. A connection on which calls have begun and
// no complete message arrives for `stall_time` plus 1 s per 64 KiB of a
// maximum-size message is ended, unless it keeps sending 64 KiB/s, as with many
// large messages in parallel, or did so within the last `stall_time`.
//
// Not detected: a client that completes a small call now and then, or sends at
// that rate forever, may keep other messages half-sent for as long as the
// connection may live; --request-memory bounds the memory of all of these.
//
// Not thread-safe.
class CallWatch {
 public:
  // Approximate, including allocator overhead.
  static constexpr std::int64_t kBytesPerCall = 20 << 10;
  static constexpr std::int64_t kShareOfMemory =
      8;  // open calls may take 1/8 of the limit
  // A message sent more slowly is too slow.
  static constexpr std::int64_t kMinBytesPerSecond = 64 << 10;

  struct Options {
    absl::Duration stall_time = absl::InfiniteDuration();
    std::int64_t max_message_bytes = 0;
    int max_stream_count = 0;  // calls that a connection may have at once
  };

  struct Connection {
    std::string peer;  // as gRPC names it
    std::string host;
    std::int64_t open_count = 0;  // calls that have begun and not ended
    // Those of them that the server was told of.
    std::int64_t known_count = 0;
    std::int64_t message_count = 0;   // complete messages since it was opened
    std::int64_t received_bytes = 0;  // since it was opened
  };

  explicit CallWatch(const Options& options) : options_(options) {}

  // Returns the maximum number of open calls; `limit_bytes`: memory limit of
  // the process, 0: unlimited.
  std::int64_t MostCalls(std::int64_t limit_bytes) const;

  // Returns the names of the connections to end so that at most `most_calls`
  // calls are open.
  static std::vector<std::string> Crowding(
      std::span<const Connection> connections, std::int64_t most_calls);

  // Call periodically, with all connections, at `now`, which must not decrease.
  // Returns the names of the connections to end because their calls do not
  // arrive.
  std::vector<std::string> Silent(std::span<const Connection> connections,
                                  SteadyTime now);

 private:
  // A connection with calls that wait for their messages.
  struct Waiting {
    SteadyTime since;
    std::int64_t message_count = 0;  // at `since`
    SteadyTime in_time;  // when it was last found to send fast enough
    std::int64_t received_bytes = 0;  // at `in_time`
  };

  const Options options_;
  absl::flat_hash_map<std::string, Waiting> waiting_;  // by name
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_CALL_WATCH_H_
