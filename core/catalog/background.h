// The one thread that sees to indexes, beside the queries.
#ifndef ATTENDANT_CORE_CATALOG_BACKGROUND_H_
#define ATTENDANT_CORE_CATALOG_BACKGROUND_H_

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace attendant {

// Runs one task at a time, each not before its time, the earliest first.
// Thread-safe. The destructor drops tasks that have not begun and waits for the
// one that has.
class BackgroundWorker {
 public:
  BackgroundWorker();
  ~BackgroundWorker();

  // `owner` groups tasks for Remove.
  void Add(const void* owner, absl::Duration delay, std::function<void()> task);

  // Makes the owner's tasks due now.
  void Hurry(const void* owner);

  // Drops the owner's tasks that have not begun and waits for the one that has.
  // Not to be called from a task.
  void Remove(const void* owner);

 private:
  struct Task {
    const void* owner = nullptr;
    std::chrono::steady_clock::time_point due;
    std::function<void()> run;
  };

  void Run();

  Mutex mutex_;
  CondVar changed_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  const void* running_owner_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_BACKGROUND_H_
