// The threads that do the work of requests.
#ifndef ATTENDANT_SERVICE_WORKER_POOL_H_
#define ATTENDANT_SERVICE_WORKER_POOL_H_

#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace attendant {

// Something to run once on a worker. The pool does not own it: it must live
// until Run returns, and may delete itself there.
class Work {
 public:
  virtual void Run() = 0;

 protected:
  ~Work() = default;
};

// A fixed number of threads over one bounded first-in-first-out queue.
// Thread-safe.
class WorkerPool {
 public:
  // thread_count and max_waiting_count >= 1.
  WorkerPool(int thread_count, std::size_t max_waiting_count);
  // Stops.
  ~WorkerPool();

  // False if max_waiting_count works wait already, or the pool was stopped; the
  // work is then not run.
  bool TryAdd(Work* work);

  // Runs what waits, takes nothing more, and returns when the threads are gone.
  // Not from a worker. A second call returns at once.
  void Stop();

 private:
  void RunWorker();

  const std::size_t max_waiting_count_;
  Mutex mutex_;
  CondVar added_;
  std::deque<Work*> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WORKER_POOL_H_
