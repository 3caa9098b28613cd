#include "client/load/send/open_loop.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "core/base/clock.h"

namespace attendant {
namespace {

// Lets this thread's sleeps end on time, not up to 50 us later.
class ExactSleeps {
 public:
  ExactSleeps() : slack_(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) {
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  }
  ~ExactSleeps() { prctl(PR_SET_TIMERSLACK, slack_, 0, 0, 0); }

 private:
  const int slack_;
};

// Sleeps until `time`, or until shortly after the traffic is stopped.
void SleepUntil(SteadyTime time, const Traffic& traffic) {
  constexpr std::chrono::milliseconds kLook{50};
  while (time - SteadyNow() > kLook) {
    std::this_thread::sleep_for(kLook);
    if (traffic.is_stopped()) return;
  }
  std::this_thread::sleep_until(time);
}

// Finds the slice of each time; times must ascend.
class SliceFinder {
 public:
  SliceFinder(const std::vector<RateProfile::Stage>& slices,
              absl::Duration warmup)
      : slices_(slices), end_(warmup) {}

  int At(absl::Duration time) {
    while (time >= end_ && slice_ + 1 < static_cast<int>(slices_.size())) {
      ++slice_;
      end_ += slices_[slice_].duration;
    }
    return slice_;
  }

 private:
  const std::vector<RateProfile::Stage>& slices_;
  int slice_ = Recorder::kWarmup;
  absl::Duration end_;  // end of the current slice
};

}  // namespace

LoadResult RunOpenLoop(const OpenLoopOptions& options, const Traffic& traffic) {
  const RateProfile profile = options.profile.WithWarmup(options.warmup);
  const std::vector<RateProfile::Stage> slices = options.profile.Slices();
  const absl::Duration end = profile.duration();
  Schedule schedule(profile, options.arrivals, options.seed);
  SliceFinder finder(slices, options.warmup);
  // Once all is made that is made below.
  const SteadyTime start = SteadyAfter(absl::Milliseconds(1));
  Recorder recorder(traffic.kinds, slices,
                    start + absl::ToChronoNanoseconds(options.warmup));
  const ExactSleeps exact_sleeps;
  std::optional<Monitor> monitor(std::in_place, recorder, traffic, end);
  absl::Duration counted = options.profile.duration();
  std::int64_t index = 0;
  for (absl::Duration due = schedule.Next(); due < end; due = schedule.Next()) {
    const SteadyTime time = start + absl::ToChronoNanoseconds(due);
    SleepUntil(time, traffic);
    if (traffic.is_stopped()) {
      const absl::Duration passed = TimeSince(start) - options.warmup;
      counted = std::max(absl::Nanoseconds(1), passed);
      recorder.SetSlices(CutAt(passed, slices));
      break;
    }
    const int slice = finder.At(due);
    if (!recorder.Send(slice)) continue;
    recorder.SentLate(slice, TimeSince(time));
    const int kind = traffic.kind_of(index);
    traffic.send(index++,
                 [&recorder, kind, slice, time](const absl::Status& status) {
                   recorder.Answer(kind, slice, status,
                                   absl::ToInt64Nanoseconds(TimeSince(time)));
                 });
  }
  recorder.AwaitAnswers();
  monitor.reset();  // adds the last moment to the result
  return recorder.Take(counted);
}

}  // namespace attendant
