#include "client/load/traffic.h"

#include <algorithm>

#include "core/base/clock.h"

namespace attendant {
namespace {

constexpr int kMomentCount = 120;
constexpr absl::Duration kShortestMoment = absl::Milliseconds(100);
constexpr absl::Duration kLongestMoment = absl::Seconds(10);
constexpr absl::Duration kWatchPeriod = absl::Milliseconds(250);

}  // namespace

Monitor::Monitor(Recorder& recorder, const Traffic& traffic,
                 absl::Duration total)
    : recorder_(recorder), traffic_(traffic), thread_([this, total] {
        Run(std::clamp(total / kMomentCount, kShortestMoment, kLongestMoment));
      }) {}

Monitor::~Monitor() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    stopped_changed_.NotifyAll();
  }
  thread_.join();
}

void Monitor::Run(absl::Duration period) {
  const SteadyTime start = SteadyNow();
  absl::Duration moment_begin;
  absl::Duration next_watch = kWatchPeriod;
  while (true) {
    {
      const absl::Duration next = std::min(moment_begin + period, next_watch);
      MutexLock lock(&mutex_);
      while (!stopped_ && TimeSince(start) < next) {
        stopped_changed_.WaitWithTimeout(&mutex_, next - TimeSince(start));
      }
      if (stopped_) return;
    }
    const absl::Duration elapsed = TimeSince(start);
    if (elapsed >= moment_begin + period) {
      recorder_.EndMoment(elapsed, elapsed - moment_begin);
      moment_begin = elapsed;
    }
    if (elapsed >= next_watch) {
      if (traffic_.watch) traffic_.watch(recorder_.Look(), elapsed);
      next_watch = elapsed + kWatchPeriod;
    }
  }
}

}  // namespace attendant
