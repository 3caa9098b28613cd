#include "client/load/send/traffic.h"

#include <algorithm>

#include "core/base/clock.h"

namespace attendant {
namespace {

constexpr int kMomentCount = 120;
constexpr absl::Duration kShortestMoment = absl::Milliseconds(100);
constexpr absl::Duration kLongestMoment = absl::Seconds(10);
constexpr absl::Duration kWatchPeriod = absl::Milliseconds(250);
constexpr absl::Duration kPatience = absl::Seconds(1);

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
  absl::Duration last_wanted;  // the last time it was not stopped
  bool running = true;
  while (running) {
    {
      const absl::Duration next = std::min(moment_begin + period, next_watch);
      MutexLock lock(&mutex_);
      while (!stopped_ && TimeSince(start) < next) {
        stopped_changed_.WaitWithTimeout(&mutex_, next - TimeSince(start));
      }
      running = !stopped_;
    }
    const absl::Duration elapsed = TimeSince(start);
    if (!running) {
      recorder_.EndLastMoment(elapsed, elapsed - moment_begin);
    } else if (elapsed >= moment_begin + period) {
      recorder_.EndMoment(elapsed, elapsed - moment_begin);
      moment_begin = elapsed;
    }
    if (!traffic_.is_stopped()) {
      last_wanted = elapsed;
    } else if (elapsed >= last_wanted + kPatience) {
      traffic_.cancel();
    }
    if (elapsed >= next_watch) {
      if (traffic_.watch) traffic_.watch(recorder_.Look(), elapsed);
      next_watch = elapsed + kWatchPeriod;
    }
  }
}

}  // namespace attendant
