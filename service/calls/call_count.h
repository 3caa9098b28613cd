// Counts the calls in progress.
#ifndef ATTENDANT_SERVICE_CALLS_CALL_COUNT_H_
#define ATTENDANT_SERVICE_CALLS_CALL_COUNT_H_

#include <algorithm>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace attendant {

// Counts calls from their start until gRPC is done with them. Thread-safe.
class CallCount {
 public:
  // Counts one call while it lives.
  class Counted {
   public:
    explicit Counted(CallCount& calls) : calls_(calls) { calls_.Begin(); }
    ~Counted() { calls_.End(); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

   private:
    CallCount& calls_;
  };

  void Begin() {
    MutexLock lock(&mutex_);
    ++count_;
  }
  void End() {
    MutexLock lock(&mutex_);
    if (--count_ == 0) none_.NotifyAll();
  }
  // Waits until no call is in progress; returns false if `deadline` passed
  // first.
  bool AwaitNone(SteadyTime deadline) {
    MutexLock lock(&mutex_);
    while (count_ > 0) {
      const absl::Duration left = TimeUntil(deadline);
      if (left <= absl::ZeroDuration()) return false;
      none_.WaitWithTimeout(&mutex_, left);
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar none_;
  std::int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_CALL_COUNT_H_
