// Decides which works wait, which are refused, and which has the next turn.
#ifndef ATTENDANT_SERVICE_QUEUE_WORK_QUEUE_H_
#define ATTENDANT_SERVICE_QUEUE_WORK_QUEUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "service/queue/fair_queue.h"
#include "service/queue/service_time.h"
#include "service/queue/wait_limit.h"
#include "service/queue/work.h"

namespace attendant {

// Totals so far, and current state. Times are in nanoseconds.
struct WorkCounts {
  // Works offered; those refused because too many waited; those refused because
  // they could not have met their deadline.
  std::int64_t offered_count = 0;
  std::int64_t refused_full_count = 0;
  std::int64_t refused_late_count = 0;
  // Works that were no longer wanted before their turn and took no worker time.
  std::int64_t ended_waiting_count = 0;
  // Works that ended in their turn, the number of turns, the worker time they
  // took, and the time works waited for them.
  std::int64_t run_count = 0;
  std::int64_t turn_count = 0;
  std::int64_t elsewhere_turn_count = 0;  // turns on threads outside the pool
  std::int64_t busy_ns = 0;
  std::int64_t waited_ns = 0;
  // Works that were run but stopped early because they were no longer wanted,
  // and how long they ran on after that: in total and at most.
  std::int64_t cut_short_count = 0;
  std::int64_t overrun_ns = 0;
  std::int64_t longest_overrun_ns = 0;
  // Waiting works, the current limit on them, and busy workers.
  std::size_t waiting_count = 0;
  std::size_t waiting_limit = 0;
  int busy_worker_count = 0;
};

// The decisions of a WorkerPool, without threads and locks; the caller supplies
// the time. Not thread-safe.
class WorkQueue {
 public:
  struct Options {
    int thread_count = 1;                  // workers, >= 1
    std::size_t max_waiting_count = 1024;  // waiting works, >= 1
    // Refuse works that, by the times measured so far, can't meet their
    // deadline.
    bool refuses_late = false;
    // Maximum concurrent turns of works of one catalog and of one caller, so
    // that works which wait for each other leave turns to others; 0: unlimited.
    // Works without a catalog count for their caller alone.
    int max_turns_of_catalog = 0;
    int max_turns_of_caller = 0;
    // Limit the waiting time (WaitLimit); for works that keep workers busy.
    bool limits_wait = false;
  };

  // With limits_wait, the target for the maximum waiting time: this many turns,
  // by their current mean, but at least kMinTarget. In any case kMinWaiting
  // works per worker may wait; if works share turns, twice as many as a turn
  // has now, up to kMaxWaiting, so that turns can fill up, which is when
  // workers are most efficient.
  static constexpr std::int64_t kTargetTurns = 2;
  static constexpr absl::Duration kMinTarget = absl::Milliseconds(10);
  static constexpr double kMinWaiting = 8;
  static constexpr double kMaxWaiting = 32;
  // How long a work that may be paused keeps its worker before works that have
  // had less are served.
  static constexpr absl::Duration kSlice = absl::Milliseconds(5);
  // With limits_wait, waiting works beyond the minimum above must not take the
  // workers longer than this.
  static constexpr absl::Duration kLongestBurst = absl::Milliseconds(100);

  // A work that will not run, and why. No work: nothing was refused.
  struct Refusal {
    enum class Cause { kFull, kLate, kEnded };

    Work* work = nullptr;
    Cause cause = Cause::kFull;
    // When there should be room again.
    absl::Duration retry_delay;
    // kFull: waiting works, and the number from which no more are accepted.
    std::size_t waiting_count = 0;
    std::size_t waiting_limit = 0;
    // kLate: estimated time until the reply, and time until the deadline.
    absl::Duration expected;
    absl::Duration left;
    // kEnded: why the work is no longer wanted.
    absl::Status ended;

    // Tells the work, if there is one. Call without a lock, since the work may
    // end there.
    void Tell() const;
  };

  explicit WorkQueue(const Options& options);

  // Adds `work` to the queue. Refuses it if it is no longer wanted or would be
  // late. If too many works wait, refuses the newest work of the sender with
  // the most waiting, which may be `work` itself. A work that has begun is
  // refused only if it is no longer wanted.
  Refusal Add(Work* work, SteadyTime now);

  // Takes the next work for a free worker and begins a turn. Returns null if no
  // waiting work may begin; if the next work is no longer wanted, which is then
  // in `refusal` and takes no turn; or if the next work was paused, in which
  // case its own thread is told to continue.
  Work* Begin(SteadyTime now, Turn* turn, Refusal* refusal);

  // True if `work`, which has its turn, must first let works of callers or
  // catalogs that have had less run. Charges the time taken so far.
  bool ShouldPause(Work& work, SteadyTime now);

  // Pauses `work`: it waits like a work that has begun, and is neither refused
  // nor removed. Notifies `resumed` when its turn continues. Pauses are
  // excluded from the time of a turn, so that the learned times do not depend
  // on them.
  void Pause(Work* work, SteadyTime now, CondVar* resumed);

  // Appends to `taken` up to `most` waiting works of `first`'s group, but no
  // more than a worker's share of the waiting works. They join `first`'s turn.
  void TakeAlong(const Work& first, std::size_t most, SteadyTime now,
                 Works& taken);

  // Ends a turn.
  void End(const Turn& turn, SteadyTime now);

  // Removes `work` if it waits and is not paused.
  bool Remove(Work* work);
  // Like Remove, but only if the work has not begun.
  bool RemoveUnlessBegun(Work* work);

  std::size_t waiting_count() const { return waiting_.count(); }
  // True if no work waits or has its turn.
  bool is_idle() const { return waiting_.count() == 0 && busy_count_ == 0; }
  // True if `work` would have its turn at once if it were added.
  bool has_free_turn(const Work& work) const {
    return waiting_.count() == 0 && busy_count_ < options_.thread_count &&
           MayBegin(work);
  }
  // True if a waiting work may begin.
  bool can_begin() const;
  WorkCounts counts() const;

 private:
  bool limits_turns() const {
    return options_.max_turns_of_catalog > 0 ||
           options_.max_turns_of_caller > 0;
  }
  // False if its catalog or caller has the maximum number of concurrent turns.
  bool MayBegin(const Work& work) const;
  // True if `work` is expected to miss its deadline; `refusal` says by how
  // much.
  bool WouldBeLate(const Work& work, SteadyTime now, int flow,
                   Refusal& refusal) const;
  // Returns how long a new work like `work` waits at least if waiting works of
  // `before_ns` in total have their turns first.
  std::int64_t WaitNs(const Work& work, std::int64_t before_ns) const;
  // Returns when there should be room for `work`, which is refused.
  absl::Duration RetryDelay(const Work& work) const;
  std::int64_t ExpectedNs(int flow) const;
  std::size_t LeastLimit() const;
  // True if no more may wait; `refusal` says how many do.
  bool IsFull(Refusal& refusal) const;
  // Adapts the limit on waiting works to the time `work`, whose turn has come,
  // has waited.
  void SetLimit(const Work& work, SteadyTime now);
  void Join(Turn& turn, Work* work, SteadyTime now);
  void Resume(Work* work, SteadyTime now);

  const Options options_;
  FairQueue waiting_;
  WaitLimit limit_;
  std::array<ServiceTime, FairQueue::kFlows> times_;
  ServiceTime all_times_;
  // Means over about the last eight turns.
  std::int64_t mean_turn_ns_ = 0;
  double mean_turn_works_ = 1;
  // Mean time until a worker is free again: at most a slice for turns that may
  // be paused.
  std::int64_t mean_hold_ns_ = 0;
  int busy_count_ = 0;
  std::vector<FlowKey> flows_of_turns_;  // only with limits_turns()
  WorkCounts counts_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_WORK_QUEUE_H_
