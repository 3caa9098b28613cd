#include "client/load/send/closed_loop.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <queue>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "client/api/grpc_status.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace attendant {
namespace {

// How often a wait checks whether the load is stopped.
constexpr absl::Duration kLookForStop = absl::Milliseconds(50);

class Loop {
 public:
  Loop(const ClosedLoopOptions& options, const Traffic& traffic)
      : options_(options),
        traffic_(traffic),
        count_from_(SteadyAfter(options.warmup)),
        end_(SteadyAfter(options.warmup + options.duration)),
        recorder_(traffic.kinds, {}, count_from_),
        caller_count_(options.concurrency) {}

  LoadResult Run() {
    {
      const Monitor monitor(recorder_, traffic_,
                            options_.warmup + options_.duration);
      for (int i = 0; i < options_.concurrency; ++i) Send();
      while (AwaitTurn()) Send();
    }
    return recorder_.Take(std::clamp(TimeSince(count_from_),
                                     absl::Nanoseconds(1), options_.duration));
  }

 private:
  bool IsOver() const { return SteadyNow() >= end_ || traffic_.is_stopped(); }

  // Sends a caller's next request, or ends the caller.
  void Send() {
    if (IsOver()) {
      MutexLock lock(&mutex_);
      --caller_count_;
      changed_.NotifyAll();
      return;
    }
    const SteadyTime begin = SteadyNow();
    const std::int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
    recorder_.Send(Recorder::kWarmup);
    traffic_.send(index, [this, begin, index](const absl::Status& status) {
      // Counts after the end as well, or the slowest would be missing.
      const int slice = SteadyNow() < count_from_ ? Recorder::kWarmup : 0;
      recorder_.Answer(traffic_.kind_of(index), slice, status,
                       absl::ToInt64Nanoseconds(TimeSince(begin)));
      if (status.ok()) {
        Send();
        return;
      }
      MutexLock lock(&mutex_);
      waiting_.push(
          SteadyAfter(RetryInfoDelayOf(status).value_or(kDelayAfterFailure)));
      changed_.NotifyAll();
    });
  }

  // Waits until a caller whose last request failed should send again or end.
  // Returns false when all have ended.
  bool AwaitTurn() {
    MutexLock lock(&mutex_);
    while (caller_count_ > 0) {
      if (waiting_.empty()) {
        changed_.Wait(&mutex_);
        continue;
      }
      const absl::Duration left = TimeUntil(waiting_.top());
      if (left <= absl::ZeroDuration() || IsOver()) {
        waiting_.pop();
        return true;
      }
      changed_.WaitWithTimeout(&mutex_, std::min(left, kLookForStop));
    }
    return false;
  }

  const ClosedLoopOptions& options_;
  const Traffic& traffic_;
  const SteadyTime count_from_;
  const SteadyTime end_;
  Recorder recorder_;
  std::atomic<std::int64_t> next_{0};
  Mutex mutex_;
  CondVar changed_;
  int caller_count_ ABSL_GUARDED_BY(mutex_);  // callers that have not ended
  // When callers send again.
  std::priority_queue<SteadyTime, std::vector<SteadyTime>,
                      std::greater<SteadyTime>>
      waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

LoadResult RunClosedLoop(const ClosedLoopOptions& options,
                         const Traffic& traffic) {
  Loop loop(options, traffic);
  return loop.Run();
}

}  // namespace attendant
