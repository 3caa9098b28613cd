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
    return recorder_.Take(std::clamp(TimeSince(count_from_),
                                     absl::Nanoseconds(1), options_.duration));
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
      // After the end too: else the slowest would be missing.
      const int slice = SteadyNow() < count_from_ ? Recorder::kWarmup : 0;
      recorder_.Answer(traffic_.kind_of(index), slice, status,
                       absl::ToInt64Nanoseconds(TimeSince(begin)));
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
