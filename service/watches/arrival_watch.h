// Refuses calls of a connection that begins far more than it may have at once.
#ifndef ATTENDANT_SERVICE_WATCHES_ARRIVAL_WATCH_H_
#define ATTENDANT_SERVICE_WATCHES_ARRIVAL_WATCH_H_

#include <grpc/grpc_security.h>
#include <grpcpp/security/auth_context.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "service/watches/crowd.h"

namespace attendant {

// gRPC enforces the limit on concurrent calls only once the client has
// acknowledged its settings, which a hostile client never does, and the server
// is not told of a call before its message has arrived. Each such call takes 13
// KiB, so one connection fills gigabytes in seconds. While more calls are
// waiting for their message than four connections may have at once, the watch
// counts them by connection and lets none begin more than twice its limit.
//
// The server is not told either of a call that is cancelled before its message
// has arrived. Calls of gRPC's synchronous reflection count as arrived when
// they are answered, so those cancelled or refused earlier never do
// (ResetWatch). The counts are therefore reset every minute. Thread-safe.
class ArrivalWatch {
 public:
  // `max_stream_count`: calls that a connection may have at once, > 0.
  explicit ArrivalWatch(int max_stream_count)
      : max_stream_count_(max_stream_count) {}

  // Call when the headers of a call have arrived. ResourceExhausted, with the
  // number of calls the connection has begun and its limit, if the call must be
  // refused.
  absl::Status Begin(grpc_auth_context* connection);
  // Call when the rest of a call that was not refused has arrived. For streams,
  // the first message may come later.
  void Arrive();
  // True if calls are counted by connection; then call ArriveFrom after Arrive.
  bool is_counting() const { return is_counting_.load(); }
  void ArriveFrom(const grpc::AuthContext& connection);

  // Like Begin and ArriveFrom, for a connection by name; Begin returns false if
  // the call must be refused.
  bool Begin(const std::string& connection, SteadyTime now);
  void ArriveFrom(const std::string& connection);

  // Calls that have begun and not arrived, including some that never will.
  std::int64_t waiting_count() const { return waiting_count_.load(); }
  // Calls that were refused.
  std::int64_t refused_count() const { return refused_count_.load(); }

 private:
  static constexpr std::int64_t kSlack = 2;
  static constexpr std::chrono::seconds kMemory{60};

  // Maximum number of calls that one connection may have begun and not sent.
  std::int64_t most_of_one() const { return kSlack * max_stream_count_; }
  bool has_too_many() const {
    return waiting_count_.load() > kConnectionsLetBe * max_stream_count_;
  }
  // A property that the watch sets on the connection; gRPC has no lock of its
  // own for properties.
  std::string NameOf(grpc_auth_context* connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Empty if the connection has no name.
  std::string NameOf(const grpc::AuthContext& connection) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::int64_t max_stream_count_;
  std::atomic<std::int64_t> waiting_count_ = 0;  // begun, not arrived
  std::atomic<std::int64_t> refused_count_ = 0;
  std::atomic<bool> is_counting_ = false;  // waiting_counts_ is in use
  Mutex mutex_;
  SteadyTime forgets_at_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  std::int64_t next_connection_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, std::int64_t> waiting_counts_
      ABSL_GUARDED_BY(mutex_);  // by connection, since the watch began to count
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_ARRIVAL_WATCH_H_
