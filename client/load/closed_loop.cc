#include "client/load/closed_loop.h"

#include <algorithm>
#include <atomic>
#include <latch>

#include "core/base/clock.h"

namespace attendant {
namespace {

class Loop {
 public:
  Loop(const ClosedLoopOptions& options, const Traffic& traffic)
      : options_(options),
        traffic_(traffic),
        count_from_(SteadyAfter(options.warmup)),
        end_(SteadyAfter(options.warmup + options.duration)),
        recorder_(traffic.kinds, {}, count_from_),
        running_(options.concurrency) {}

  LoadResult Run() {
    {
      const Monitor monitor(recorder_, traffic_,
                            options_.warmup + options_.duration);
      for (int i = 0; i < options_.concurrency; ++i) Send();
      running_.wait();
    }
    const absl::Duration duration = std::clamp(
        TimeSince(count_from_), absl::Nanoseconds(1), options_.duration);
    LoadResult result = recorder_.Take(duration);
    // What fails later is counted, and takes no part in the rate.
    result.duration = duration;
    return result;
  }

 private:
  void Send() {
    const SteadyTime begin = SteadyNow();
    if (begin >= end_ || traffic_.is_stopped()) {
      running_.count_down();
      return;
    }
    const std::int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
    recorder_.Send(Recorder::kWarmup);
    traffic_.send(index, [this, begin, index](const absl::Status& status) {
      const SteadyTime now = SteadyNow();
      // What fails after the end was waited for until then: else no timeout as
      // long as the load would ever be seen.
      const bool counts = now >= count_from_ && (now < end_ || !status.ok());
      recorder_.Answer(traffic_.kind_of(index), counts ? 0 : Recorder::kWarmup,
                       status, absl::ToInt64Nanoseconds(TimeSince(begin)));
      Send();
    });
  }

  const ClosedLoopOptions& options_;
  const Traffic& traffic_;
  const SteadyTime count_from_;
  const SteadyTime end_;
  Recorder recorder_;
  std::latch running_;
  std::atomic<std::int64_t> next_{0};
};

}  // namespace

LoadResult RunClosedLoop(const ClosedLoopOptions& options,
                         const Traffic& traffic) {
  Loop loop(options, traffic);
  return loop.Run();
}

}  // namespace attendant
