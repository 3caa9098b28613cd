// Limits the rate of log events.
#ifndef ATTENDANT_SERVICE_LOG_LOG_LIMITER_H_
#define ATTENDANT_SERVICE_LOG_LOG_LIMITER_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace attendant {

// Admits a limited number of events per second. Thread-safe.
class LogLimiter {
 public:
  explicit LogLimiter(int most_a_second) : most_(most_a_second) {}

  // Returns nothing if the event must not be logged; otherwise the number of
  // events suppressed since the last one that was admitted. `now` must not
  // decrease.
  std::optional<std::int64_t> Admit(SteadyTime now) {
    MutexLock lock(&mutex_);
    if (now >= second_end_) {
      second_end_ = now + std::chrono::seconds(1);
      left_ = most_;
    }
    if (left_ == 0) {
      ++dropped_count_;
      return std::nullopt;
    }
    --left_;
    return std::exchange(dropped_count_, 0);
  }

 private:
  const int most_;
  Mutex mutex_;
  SteadyTime second_end_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  int left_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t dropped_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_LOG_LOG_LIMITER_H_
