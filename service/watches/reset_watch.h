// Ends connections whose clients have more calls, or reset them faster, than
// gRPC can end them.
#ifndef ATTENDANT_SERVICE_WATCHES_RESET_WATCH_H_
#define ATTENDANT_SERVICE_WATCHES_RESET_WATCH_H_

#include <grpcpp/server_builder.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "service/log/log_limiter.h"
#include "service/watches/arrival_watch.h"
#include "service/watches/crowd.h"
#include "service/watches/known_calls.h"

namespace attendant {

// A stream that was reset no longer counts among those of its connection, so a
// client that resets each at once may open others without end (CVE-2023-44487).
// gRPC keeps some 20 KiB of each call until it comes to write, which it doesn't
// while there is more to read; one connection fills gigabytes in seconds. While
// gRPC has more calls than four connections may have at once, the watch counts
// whose are open or cancelled. It drops a connection with more cancelled within
// a second than it may have at once, or with more than twice as many open,
// which no client has that acknowledged the number. Where so many calls as four
// connections may have were cancelled and are not gone yet, no connection is
// read faster than 5,000 calls a second. Those that are open cost nobody time,
// however many: watches of health may stay for hours.
//
// Calls of gRPC's synchronous reflection are not among those that gRPC has too
// many of: of them only the number of threads is limited (SetTransportLimits).
// Thread-safe.
class ResetWatch {
 public:
  // Ends the connection of `peer`, as gRPC names it.
  using Drop = std::function<void(absl::string_view peer)>;

  // `max_stream_count`: calls that a connection may have at once, > 0.
  // `arrivals`, told of what it asks for, must outlive the watch.
  ResetWatch(int max_stream_count, ArrivalWatch* arrivals)
      : max_stream_count_(max_stream_count), arrivals_(*arrivals) {}

  // Before the first call.
  void OnFlood(Drop drop) { drop_ = std::move(drop); }

  // Counts the calls of the server that is built, those of gRPC's health
  // service and of methods that there are not, too. The watch must outlive it.
  void Attach(grpc::ServerBuilder& builder);

  // True while gRPC still has too many calls after a drop, up to a second: what
  // a client that came back sent would only wait behind them.
  bool is_flooded() const {
    return HasTooMany() && SteadyNow() < flood_end_.load();
  }

  // Calls that gRPC has and has told the server of: until they are gone.
  std::int64_t call_count() const { return call_count_.load(); }
  // Those that have not ended, but of reflection.
  const KnownCalls& known_calls() const { return known_calls_; }

  // Connections that were dropped.
  std::int64_t dropped_count() const { return dropped_count_.load(); }

  // Calls that were read late, so that gRPC comes to end those cancelled.
  std::int64_t pause_count() const { return pause_count_.load(); }

  // One of `peer` while gRPC has too many, at `now`, which does not go back.
  void CountCancelled(const std::string& peer, SteadyTime now);
  // One more or less of those that began then.
  void CountOpen(const std::string& peer, int more, SteadyTime now);

 private:
  class Contexts;
  class Reflection;
  class Witness;
  class Witnesses;

  void DropPeer(const std::string& peer, absl::string_view reason,
                SteadyTime now);

  std::int64_t MostCalls() const {
    return kConnectionsLetBe * max_stream_count_;
  }
  bool HasTooMany() const { return call_count() > MostCalls(); }

  const std::int64_t max_stream_count_;
  ArrivalWatch& arrivals_;
  Drop drop_;
  KnownCalls known_calls_;
  std::atomic<std::int64_t> call_count_ = 0;
  std::atomic<std::int64_t> cancelled_count_ = 0;  // of those that began late
  std::atomic<std::int64_t> dropped_count_ = 0;
  std::atomic<std::int64_t> pause_count_ = 0;
  std::atomic<SteadyTime> flood_end_ = SteadyTime::min();
  LogLimiter logged_{10};
  Mutex mutex_;
  SteadyTime second_end_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  absl::flat_hash_map<std::string, std::int64_t> cancelled_counts_
      ABSL_GUARDED_BY(mutex_);  // in this second, by peer
  absl::flat_hash_map<std::string, std::int64_t> open_counts_
      ABSL_GUARDED_BY(mutex_);  // of those that were counted
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_RESET_WATCH_H_
