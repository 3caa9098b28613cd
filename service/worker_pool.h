// The threads that do the work of requests.
#ifndef ATTENDANT_SERVICE_WORKER_POOL_H_
#define ATTENDANT_SERVICE_WORKER_POOL_H_

#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"

namespace attendant {

// Something to run once on a worker. The pool does not own it: it must live
// until Run returns, and may delete itself there.
class Work {
 public:
  virtual void Run() = 0;
  // Works of one group may be done by the one that has its turn: see TakeAlong.
  // Empty: of none.
  virtual absl::string_view group() const { return {}; }

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

  // Takes works of `work`'s group out of the queue, in its order, for `work` to
  // run: `most`, or fewer so that every worker has its share of what waits.
  // None if nothing waits: there is no waiting for others to come.
  void TakeAlong(const Work& work, std::size_t most, std::vector<Work*>& taken);

  // Works that no worker has begun.
  std::size_t waiting_count() const;

  // Runs what waits, takes nothing more, and returns when the threads are gone.
  // Not from a worker. A second call returns at once.
  void Stop();

 private:
  void RunWorker();

  const std::size_t thread_count_;
  const std::size_t max_waiting_count_;
  mutable Mutex mutex_;
  CondVar added_;
  std::deque<Work*> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WORKER_POOL_H_
