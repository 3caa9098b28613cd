// Ends calls whose clients do not take their replies or send nothing.
#ifndef ATTENDANT_SERVICE_WATCHES_STALL_WATCH_H_
#define ATTENDANT_SERVICE_WATCHES_STALL_WATCH_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "service/log/log_limiter.h"
#include "service/watches/linked_list.h"

namespace grpc {
class CallbackServerContext;
}  // namespace grpc

namespace attendant {

// A client that opens streams and never reads keeps the replies in the server's
// memory for as long as it likes; deadlines are set by the client. Four times
// per stall time, the watch examines all calls whose replies wait for their
// clients and cancels those that have waited longer than the stall time plus 1
// s per kMinBytesPerSecond bytes. When all replies together exceed their memory
// limit, it cancels at once the calls with reply bytes that have waited
// longest. It also cancels calls that wait for a message longer than the idle
// time. It allocates only to log. Thread-safe.
class StallWatch {
 public:
  // A client that takes replies more slowly is too slow.
  static constexpr std::int64_t kMinBytesPerSecond = 64 << 10;

  struct Options {
    absl::Duration stall_time;  // > 0
    absl::Duration idle_time;   // > 0
    // Maximum memory of all replies that wait for clients.
    std::int64_t reply_memory_bytes = 0;
    // For tests: the clock, and how a call is cancelled. Thread-safe.
    SteadyTime (*now)() = &SteadyNow;
    std::function<void(const grpc::CallbackServerContext& context)> cancel =
        &TryCancel;
  };

  // Starts a thread.
  explicit StallWatch(Options options);
  // All Waits must have been destroyed.
  ~StallWatch();

  // Calls that were cancelled.
  std::int64_t stalled_count() const { return stalled_count_.load(); }

  // What a call in progress waits for. Created and destroyed with the call,
  // while gRPC has its context.
  class Wait : public LinkedList<Wait>::Links {
   public:
    Wait(StallWatch& watch, const grpc::CallbackServerContext& context);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    // Begin when a reply of `bytes` bytes, or a part of one, is handed to gRPC;
    // End when gRPC reports that it was sent. The last reply lasts until the
    // call ends.
    void Begin(std::size_t bytes);
    // Begin when gRPC is asked for a message; End when it delivers one.
    void BeginRead();
    void End();

   private:
    friend class StallWatch;
    static constexpr std::int64_t kNone = -1;

    StallWatch& watch_;
    const grpc::CallbackServerContext& context_;
    // Values of NowNanoseconds. end_ns_ alone decides whether a wait is too
    // long, since another wait may begin between reading the two.
    std::atomic<std::int64_t> begin_ns_ = kNone;
    std::atomic<std::int64_t> end_ns_ = kNone;
    std::atomic<std::int64_t> bytes_ = 0;  // of the reply
  };

 private:
  static void TryCancel(const grpc::CallbackServerContext& context);

  std::int64_t NowNanoseconds() const {
    return options_.now().time_since_epoch() / std::chrono::nanoseconds(1);
  }
  void Run();
  // Cancels calls that have waited too long; returns whether there were any.
  // Unlocks mutex_ temporarily.
  bool CancelStalled() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Cancel(Wait& wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the reply that has waited longest; null if none waits.
  Wait* LongestWithReply() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  std::atomic<std::int64_t> waiting_bytes_ = 0;
  std::atomic<std::int64_t> stalled_count_ = 0;
  LogLimiter logged_{10};
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  LinkedList<Wait> waits_ ABSL_GUARDED_BY(mutex_);
  // The one that CancelStalled examines next.
  Wait* following_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // Must stay alive while it is cancelled, unless the cancellation itself ends
  // it.
  Wait* cancelling_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_STALL_WATCH_H_
