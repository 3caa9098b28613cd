#include "client/load/open_loop.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/base/mutex.h"

namespace attendant {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Shared by the sender and the threads that answers come from.
class Outcomes {
 public:
  void Send() {
    MutexLock lock(&mutex_);
    ++waiting_;
  }
  void Answer(bool counts, const absl::Status& status,
              SteadyClock::duration latency) {
    MutexLock lock(&mutex_);
    --waiting_;
    if (counts) {
      result_.Add(status, std::chrono::nanoseconds(latency).count());
    }
    changed_.NotifyAll();
  }
  LoadResult Await() {
    MutexLock lock(&mutex_);
    while (waiting_ > 0) changed_.Wait(&mutex_);
    return std::move(result_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::int64_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  LoadResult result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Duration Schedule::Next() {
  if (arrivals_ == Arrivals::kFixed) {
    return absl::Seconds(static_cast<double>(count_++) / rate_);
  }
  seconds_ += std::exponential_distribution<double>(rate_)(random_);
  return absl::Seconds(seconds_);
}

LoadResult RunOpenLoop(const OpenLoopOptions& options,
                       const SendRequest& send) {
  Schedule schedule(options.rate, options.arrivals, options.seed);
  Outcomes outcomes;
  std::int64_t late_count = 0;
  SteadyClock::duration latest(0);
  const SteadyClock::time_point start = SteadyClock::now();
  const absl::Duration end = options.warmup + options.duration;
  std::int64_t index = 0;
  for (absl::Duration due = schedule.Next(); due < end; due = schedule.Next()) {
    const SteadyClock::time_point time = start + absl::ToChronoNanoseconds(due);
    std::this_thread::sleep_until(time);
    const bool counts = due >= options.warmup;
    const SteadyClock::duration late = SteadyClock::now() - time;
    if (counts) {
      latest = std::max(latest, late);
      late_count += late > absl::ToChronoNanoseconds(LoadResult::kLate);
    }
    outcomes.Send();
    send(index++, [&outcomes, counts, time](const absl::Status& status) {
      outcomes.Answer(counts, status, SteadyClock::now() - time);
    });
  }
  LoadResult result = outcomes.Await();
  result.duration = options.duration;
  result.late_count = late_count;
  result.latest_ns = std::chrono::nanoseconds(latest).count();
  result.Finish();
  return result;
}

}  // namespace attendant
