// The threads that do the work of requests.
#ifndef ATTENDANT_SERVICE_QUEUE_WORKER_POOL_H_
#define ATTENDANT_SERVICE_QUEUE_WORKER_POOL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "core/base/spare_time.h"
#include "service/queue/work.h"
#include "service/queue/work_queue.h"

namespace attendant {

class OwnCore;

// A pool's threads as the system sees them.
struct WorkerThreads {
  // Also the pool's; up to 15 characters.
  const char* name = "worker";
  // Of the processor, where others want it too; nullopt: as much as they.
  std::optional<Share> share = std::nullopt;
  // Waits at a core of its own, where there are as many (core/base/own_core.h).
  bool have_own_cores = false;
  // While works are turned away, threads that bring more let those of the pool
  // go on (service/queue/patience.h).
  bool are_let_go_on = false;
  // Works that other threads may run at a time (TryRunHere).
  int most_elsewhere = 1;
};

// The refusal of what comes after the shutdown began.
absl::Status Draining();

// A fixed number of workers over one WorkQueue, each a thread; and threads that
// stand in for those whose works are paused. Thread-safe.
class WorkerPool {
 public:
  using Options = WorkQueue::Options;

  // Works that are paused at a time, each of which keeps a thread. Others go on
  // to their end.
  static constexpr int kMaxPaused = 64;

  explicit WorkerPool(const Options& options,
                      const WorkerThreads& threads = {});
  // Stops.
  ~WorkerPool();

  // Takes `work` to be run, once. Or refuses it, or another that waits in its
  // stead: which has been told, by Work::Refuse, when this returns.
  // Unavailable once the pool was stopped.
  void Add(Work* work);

  // The same on the calling thread, where nothing waits or runs: true. Else
  // nothing happens: false. Beside others it also may where a worker is free
  // and fewer than most_elsewhere works run so. It takes a worker's turn: no
  // more works have their turns at a time than there are workers.
  bool TryRunHere(Work* work, bool beside_others);

  // Takes works of `work`'s group out of the queue, for `work` to run, inside
  // its Run: `most`, or fewer so that every worker has its share of what waits.
  // None if nothing waits: there is no waiting for others to come. None of them
  // is told if nobody wants it any more.
  void TakeAlong(const Work& work, std::size_t most, Works& taken);

  // Inside `work`'s Run, on its thread: lets others that wait have their turns
  // first, where these are due to them (WorkQueue::ShouldPause), and returns
  // when its own goes on. Without a lock that others might wait for.
  void Yield(Work* work);

  // Takes `work` out of the queue. False if it does not wait there, since it
  // has its turn, or had it; or if it goes on with what had a turn before
  // (Work::set_begun): then it keeps its place.
  bool RemoveUnlessBegun(Work* work);

  // Takes `work` out of the queue, if it waits there, and refuses it: its
  // caller is gone (Interrupt::GoneAt). One that is paused finds that out
  // itself.
  void Cancel(Work* work);

  WorkCounts counts() const;

  absl::string_view name() const { return thread_kind_.name; }

  // Runs what waits, takes nothing more, and returns when the threads are gone
  // and nothing runs. Not from a worker. A second call returns at once.
  void Stop();

 private:
  void RunWorker(int index);
  // Gives mutex_ away meanwhile.
  void StayAt(OwnCore& core) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sees to it that as many threads as workers are not paused once one more is.
  // False if it can't.
  bool AddStandIn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of one that stands in: waits while there are enough without it.
  void RestStandIn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A thread brought a work, of which this became.
  void TellPatience(const WorkQueue::Refusal& refusal, SteadyTime now) const;
  // Runs `work`, whose turn has begun, to the end of its turn; `elsewhere`: on
  // no thread of the pool's.
  void RunTurn(Work* work, const Turn& turn, bool elsewhere);

  const WorkerThreads thread_kind_;
  const int thread_count_;
  mutable Mutex mutex_;
  // A work may begin, or one ended of a stopped pool.
  CondVar changed_;
  WorkQueue queue_ ABSL_GUARDED_BY(mutex_);
  int elsewhere_count_ ABSL_GUARDED_BY(mutex_) = 0;  // now
  std::int64_t elsewhere_turn_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // Threads that are neither paused nor resting, those that rest, and those of
  // them that are called.
  int active_count_ ABSL_GUARDED_BY(mutex_);
  int resting_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int called_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int paused_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // A thread was called, or the pool stopped.
  CondVar called_;
  // Grows under the lock, and not once the pool was stopped.
  std::vector<std::thread> threads_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_WORKER_POOL_H_
