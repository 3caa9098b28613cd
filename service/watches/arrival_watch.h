// Refuses calls of a connection that begins more than it may have at once.
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

// gRPC holds a client to the calls that a connection may have at once from when
// the client acknowledges its settings, which a hostile one never does; and
// nobody is told of a call before its message has come. Each takes 13 KiB until
// then, so that one connection fills gigabytes in seconds. While more calls
// have not come than four connections may have at once, the watch counts them
// by connection, and lets none begin more than twice what it may have.
//
// Nobody is told either of a call that is cancelled before its message has
// come; and calls of gRPC's synchronous reflection come as they are answered,
// so that those cancelled or turned away before never do (ResetWatch). What was
// counted is forgotten each minute. Thread-safe.
class ArrivalWatch {
 public:
  // `max_stream_count`: calls that a connection may have at once, > 0.
  explicit ArrivalWatch(int max_stream_count)
      : max_stream_count_(max_stream_count) {}

  // The headers of a call have come. ResourceExhausted, with what the
  // connection has begun and may, if it is to be refused.
  absl::Status Begin(grpc_auth_context* connection);
  // The rest, too, of a call that was not refused; or its first message may
  // come later, as of streams.
  void Arrive();
  // Whether it matters whose they are: then, after Arrive.
  bool is_counting() const { return is_counting_.load(); }
  void ArriveFrom(const grpc::AuthContext& connection);

  // The same of a connection that has a name, at `now`; false: refused.
  bool Begin(const std::string& connection, SteadyTime now);
  void ArriveFrom(const std::string& connection);

  // Calls that have begun and not come, and some that never will.
  std::int64_t waiting_count() const { return waiting_count_.load(); }
  // Calls that were refused.
  std::int64_t refused_count() const { return refused_count_.load(); }

 private:
  static constexpr std::int64_t kSlack = 2;
  static constexpr std::chrono::seconds kMemory{60};

  // Calls that one connection may have begun, and not sent.
  std::int64_t most_of_one() const { return kSlack * max_stream_count_; }
  bool has_too_many() const {
    return waiting_count_.load() > kConnectionsLetBe * max_stream_count_;
  }
  // Our property of a connection: gRPC has no lock of its own for those.
  std::string NameOf(grpc_auth_context* connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Empty: it was not given any.
  std::string NameOf(const grpc::AuthContext& connection) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::int64_t max_stream_count_;
  std::atomic<std::int64_t> waiting_count_ = 0;  // have begun, but not come
  std::atomic<std::int64_t> refused_count_ = 0;
  std::atomic<bool> is_counting_ = false;  // there are waiting_counts_
  Mutex mutex_;
  SteadyTime forgets_at_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  std::int64_t next_connection_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, std::int64_t> waiting_counts_
      ABSL_GUARDED_BY(mutex_);  // since the watch counts, by connection
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_ARRIVAL_WATCH_H_
