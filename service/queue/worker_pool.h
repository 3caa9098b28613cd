// The threads that process requests.
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

// Scheduling of a pool's threads.
struct WorkerThreads {
  // Name of the threads and the pool; at most 15 characters.
  const char* name = "worker";
  // Share of the processor under contention; nullopt: the default share.
  std::optional<Share> share = std::nullopt;
  // Idle workers wait on a core of their own, if there are enough cores
  // (core/base/own_core.h).
  bool have_own_cores = false;
  // While works are refused, threads that bring more yield to the pool's
  // threads (service/queue/patience.h).
  bool are_let_go_on = false;
  // Works that other threads may run at a time (TryRunHere).
  int most_elsewhere = 1;
};

// The error for works that come after shutdown has begun. Does not allocate.
absl::Status Draining();

// A fixed number of worker threads over one WorkQueue, plus threads that stand
// in for workers whose works are paused. Thread-safe.
class WorkerPool {
 public:
  using Options = WorkQueue::Options;

  // Maximum number of paused works, each of which keeps a thread. Works beyond
  // it are not paused.
  static constexpr int kMaxPaused = 64;

  explicit WorkerPool(const Options& options,
                      const WorkerThreads& threads = {});
  // Calls Stop.
  ~WorkerPool();

  // Adds `work` to be run once, or refuses it, or refuses a waiting work in its
  // place. The refused work has been told, with Work::Refuse, before this
  // returns. Unavailable once the pool was stopped.
  void Add(Work* work);

  // Runs `work` on the calling thread and returns true if nothing waits or
  // runs; with `beside_others`, also if a worker is free, fewer than
  // most_elsewhere works run this way, and the turns of its catalog and caller
  // are not used up. Otherwise does nothing and returns
  // false. The work takes a worker's turn: there are never more concurrent
  // turns than workers.
  bool TryRunHere(Work* work, bool beside_others);

  // Call inside `work`'s Run. Takes works of its group out of the queue, for
  // `work` to run: up to `most`, but no more than a worker's share of the
  // waiting works. Takes none if none wait; it does not wait for others to
  // arrive. The works taken may no longer be wanted and are not told so.
  void TakeAlong(const Work& work, std::size_t most, Works& taken);

  // Call inside `work`'s Run, on its thread, without holding a lock that others
  // might wait for. Lets other works that are due (WorkQueue::ShouldPause) run
  // first, and returns when `work` may continue.
  void Yield(Work* work);

  // Removes `work` from the queue. Returns false if it does not wait there
  // because it has or had its turn, or if it has begun (Work::set_begun): then
  // it keeps its place.
  bool RemoveUnlessBegun(Work* work);

  // If `work` waits in the queue, removes and refuses it: its caller is gone
  // (Interrupt::GoneAt). A paused work notices that itself.
  void Cancel(Work* work);

  WorkCounts counts() const;

  absl::string_view name() const { return thread_kind_.name; }

  // Runs all waiting works, refuses new ones, and returns when the threads have
  // ended and nothing runs. Must not be called from a worker. A second call
  // returns at once.
  void Stop();

 private:
  void RunWorker(int index);
  // Unlocks mutex_ temporarily.
  void StayAt(OwnCore& core) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ensures that there are as many unpaused threads as workers once one more
  // work is paused. Returns false if that fails.
  bool AddStandIn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For stand-in threads: waits while there are enough threads without this
  // one.
  void RestStandIn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Informs the calling thread's Patience about a work it brought.
  void TellPatience(const WorkQueue::Refusal& refusal, SteadyTime now) const;
  // Runs `work`, whose turn has begun, to the end of its turn. `elsewhere`: on
  // a thread outside the pool.
  void RunTurn(Work* work, const Turn& turn, bool elsewhere);

  const WorkerThreads thread_kind_;
  const int thread_count_;
  mutable Mutex mutex_;
  // A work may begin, or a turn of a stopped pool has ended.
  CondVar changed_;
  WorkQueue queue_ ABSL_GUARDED_BY(mutex_);
  int elsewhere_count_ ABSL_GUARDED_BY(mutex_) = 0;  // running now
  std::int64_t elsewhere_turn_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // Threads that are neither paused nor resting; resting threads; and those of
  // the resting threads that were called.
  int active_count_ ABSL_GUARDED_BY(mutex_);
  int resting_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int called_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int paused_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // A thread was called, or the pool was stopped.
  CondVar called_;
  // Grows while holding the lock, and no more once the pool was stopped.
  std::vector<std::thread> threads_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_WORKER_POOL_H_
