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

// A stream that was reset no longer counts towards its connection's limit, so a
// client that resets each call at once may open others without end
// (CVE-2023-44487). gRPC keeps about 20 KiB of each call until it gets to
// write, which it does not while there is more to read; one connection fills
// gigabytes in seconds.
//
// While gRPC has more calls than four connections may have at once, the watch
// counts open and cancelled calls by peer. It drops a connection with more
// calls cancelled within a second than it may have at once, or with more than
// twice as many open, which a client that acknowledged the limit never has.
// While as many cancelled calls as four connections may have are not gone yet,
// no connection is read faster than 5,000 calls a second. Open calls alone slow
// nobody down, however many: health watches may stay for hours.
//
// Calls of gRPC's synchronous reflection are not counted here; only their
// number of threads is limited (SetTransportLimits). Thread-safe.
class ResetWatch {
 public:
  // Ends the connection of `peer`, as gRPC names it.
  using Drop = std::function<void(absl::string_view peer)>;

  // `max_stream_count`: calls that a connection may have at once, > 0.
  // `arrivals` is told which calls have arrived and must outlive the watch.
  ResetWatch(int max_stream_count, ArrivalWatch* arrivals)
      : max_stream_count_(max_stream_count), arrivals_(*arrivals) {}

  // Call before the first call arrives.
  void OnFlood(Drop drop) { drop_ = std::move(drop); }

  // Counts the calls of the server being built, including those of gRPC's
  // health service and of unknown methods. The watch must outlive the server.
  void Attach(grpc::ServerBuilder& builder);

  // True while gRPC still has too many calls after a drop, for up to a second:
  // calls of a client that reconnects would only wait behind them.
  bool is_flooded() const {
    return HasTooMany() && SteadyNow() < flood_end_.load();
  }

  // Calls that gRPC has told the server of, until gRPC has released them.
  std::int64_t call_count() const { return call_count_.load(); }
  // Those of them that have not ended, except reflection.
  const KnownCalls& known_calls() const { return known_calls_; }

  // Connections that were dropped.
  std::int64_t dropped_count() const { return dropped_count_.load(); }

  // Calls whose reading was delayed, so that gRPC gets to end cancelled ones.
  std::int64_t pause_count() const { return pause_count_.load(); }

  // Counts a cancelled call of `peer` while gRPC has too many. `now` must not
  // decrease.
  void CountCancelled(const std::string& peer, SteadyTime now);
  // Adds `more`, 1 or -1, to the open calls of `peer` that began while gRPC had
  // too many.
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
  std::atomic<std::int64_t> cancelled_count_ =
      0;  // of calls that began while gRPC had too many
  std::atomic<std::int64_t> dropped_count_ = 0;
  std::atomic<std::int64_t> pause_count_ = 0;
  std::atomic<SteadyTime> flood_end_ = SteadyTime::min();
  LogLimiter logged_{10};
  Mutex mutex_;
  SteadyTime second_end_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  absl::flat_hash_map<std::string, std::int64_t> cancelled_counts_
      ABSL_GUARDED_BY(mutex_);  // in this second, by peer
  absl::flat_hash_map<std::string, std::int64_t> open_counts_
      ABSL_GUARDED_BY(mutex_);  // of the calls that were counted, by peer
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_RESET_WATCH_H_
