// Repeats a piece of work on a thread of its own.
#ifndef ATTENDANT_CORE_BASE_REPEATED_WORK_H_
#define ATTENDANT_CORE_BASE_REPEATED_WORK_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace attendant {

// Calls `work` at once, and again each time `interval`, cut to one minute, has
// passed since the last call ended, or a little earlier after a spurious
// wake-up. A call that throws std::bad_alloc has ended. The destructor waits
// for a call that has begun.
class RepeatedWork {
 public:
  RepeatedWork(absl::Duration interval, std::function<void()> work);
  ~RepeatedWork();
  RepeatedWork(const RepeatedWork&) = delete;
  RepeatedWork& operator=(const RepeatedWork&) = delete;

 private:
  void Run();

  const absl::Duration interval_;
  const std::function<void()> work_;
  Mutex mutex_;
  CondVar stop_changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: uses the others
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_REPEATED_WORK_H_
