// Ends calls whose clients do not take their replies, or send nothing.
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

// A client that opens streams and never reads holds the replies to them in the
// server's memory as long as it likes; a deadline is the client's to set. The
// watch looks at all calls whose replies wait for their clients, four times in
// a stall time, and cancels those that have waited longer than it, and a second
// for each kMinBytesPerSecond; and at once, those with bytes that have waited
// longest, where all replies together take more memory than they may. So it
// does with calls that wait longer than an idle time for a message.
// Thread-safe.
class StallWatch {
 public:
  // Who takes replies more slowly takes too long.
  static constexpr std::int64_t kMinBytesPerSecond = 64 << 10;

  struct Options {
    absl::Duration stall_time;  // > 0
    absl::Duration idle_time;   // > 0
    // What replies that wait may take together.
    std::int64_t reply_memory_bytes = 0;
    // For tests: time, and how a call is cancelled. Thread-safe.
    SteadyTime (*now)() = &SteadyNow;
    std::function<void(const grpc::CallbackServerContext& context)> cancel =
        &TryCancel;
  };

  // Starts a thread.
  explicit StallWatch(Options options);
  // No Wait may be left.
  ~StallWatch();

  // Calls that were cancelled.
  std::int64_t stalled_count() const { return stalled_count_.load(); }

  // What a call that is under way waits for. Made and destroyed with the call,
  // while gRPC has its context.
  class Wait : public LinkedList<Wait>::Links {
   public:
    Wait(StallWatch& watch, const grpc::CallbackServerContext& context);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    // From when a reply of so many bytes, or a part of one, is handed to gRPC
    // until it says that it is sent; the last lasts until the call ends.
    void Begin(std::size_t bytes);
    // From when gRPC is asked for a message until it brings one.
    void BeginRead();
    void End();

   private:
    friend class StallWatch;
    static constexpr std::int64_t kNone = -1;

    StallWatch& watch_;
    const grpc::CallbackServerContext& context_;
    // Of NowNanoseconds. What is too long is known by one of them alone, as
    // another wait may begin between two looks.
    std::atomic<std::int64_t> begin_ns_ = kNone;
    std::atomic<std::int64_t> end_ns_ = kNone;
    std::atomic<std::int64_t> bytes_ = 0;  // of a reply
  };

 private:
  static void TryCancel(const grpc::CallbackServerContext& context);

  std::int64_t NowNanoseconds() const {
    return options_.now().time_since_epoch() / std::chrono::nanoseconds(1);
  }
  void Run();
  // Cancels those that waited too long; true if there were any. Gives mutex_
  // away meanwhile.
  bool CancelStalled() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Cancel(Wait& wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Replies that wait since then or longer take what is too much of memory;
  // Wait::kNone: nothing is.
  std::int64_t LongestToGo() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  std::atomic<std::int64_t> waiting_bytes_ = 0;
  std::atomic<std::int64_t> stalled_count_ = 0;
  LogLimiter logged_{10};
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  LinkedList<Wait> waits_ ABSL_GUARDED_BY(mutex_);
  // The one that CancelStalled looks at after this.
  Wait* following_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // Must outlive its cancellation, unless that is what ends it.
  Wait* cancelling_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_STALL_WATCH_H_
