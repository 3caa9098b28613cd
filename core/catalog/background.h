// The one thread that builds indexes, so that queries keep the cores.
#ifndef ATTENDANT_CORE_CATALOG_BACKGROUND_H_
#define ATTENDANT_CORE_CATALOG_BACKGROUND_H_

#include <deque>
#include <functional>
#include <thread>

#include "core/base/mutex.h"

namespace attendant {

// Runs tasks one after the other, in the order they came. Thread-safe. The
// destructor drops tasks that have not begun and waits for the one that has.
class BackgroundWorker {
 public:
  BackgroundWorker();
  ~BackgroundWorker();

  // A dropped task is destroyed without a call.
  void Add(std::function<void()> task);

 private:
  void Run();

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_BACKGROUND_H_
