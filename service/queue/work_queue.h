// Which works wait, which are turned away, and whose turn is next.
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

// What became of works so far, and what there is now. Times in nanoseconds.
struct WorkCounts {
  // Works that were offered; those of them that were turned away since too many
  // waited, and since they could not have met their deadline.
  std::int64_t offered_count = 0;
  std::int64_t refused_full_count = 0;
  std::int64_t refused_late_count = 0;
  // Works that nobody wanted any more before their turn, and that took no time
  // of a worker.
  std::int64_t ended_waiting_count = 0;
  // Works that ended in their turn, the turns, what they took of the workers'
  // time, and how long works had waited for it.
  std::int64_t run_count = 0;
  std::int64_t turn_count = 0;
  std::int64_t elsewhere_turn_count = 0;  // of those, on no worker's thread
  std::int64_t busy_ns = 0;
  std::int64_t waited_ns = 0;
  // Of those run, works that stopped since nobody wanted them any more, and how
  // long after that moment: in all, and at most.
  std::int64_t cut_short_count = 0;
  std::int64_t overrun_ns = 0;
  std::int64_t longest_overrun_ns = 0;
  // Works that wait, how many may, and workers that are busy.
  std::size_t waiting_count = 0;
  std::size_t waiting_limit = 0;
  int busy_worker_count = 0;
};

// What a WorkerPool decides, without its threads and its lock: the time is what
// its caller says it is. Not thread-safe.
class WorkQueue {
 public:
  struct Options {
    int thread_count = 1;                  // workers, >= 1
    std::size_t max_waiting_count = 1024;  // works that wait, >= 1
    // Turns away what can't meet its deadline, by what works took so far.
    bool refuses_late = false;
    // Works of one catalog that have their turns at a time, so that those who
    // wait for each other leave turns to others'; 0: any number. Those of no
    // catalog are not counted.
    int most_of_catalog = 0;
    // Lets no more wait than have their turn in good time (WaitLimit): for
    // works that keep workers busy.
    bool limits_wait = false;
  };

  // With limits_wait, the longest time to wait that is aimed at: so many turns
  // as they take now, or kMinTarget where that is longer. But for each worker
  // kMinWaiting works may always wait; where works share turns, twice as many
  // as a turn has now, up to kMaxWaiting: so that turns can grow full, which
  // is when workers do most.
  static constexpr std::int64_t kTargetTurns = 2;
  static constexpr absl::Duration kMinTarget = absl::Milliseconds(10);
  static constexpr double kMinWaiting = 8;
  static constexpr double kMaxWaiting = 32;
  // How long a work that may be paused keeps its worker at a time, where others
  // wait that had less.
  static constexpr absl::Duration kSlice = absl::Milliseconds(5);
  // And at any time no more than workers do in so long.
  static constexpr absl::Duration kLongestBurst = absl::Milliseconds(100);

  // What becomes of a work that will not run; a null work: there is none.
  struct Refusal {
    enum class Cause { kFull, kLate, kEnded };

    Work* work = nullptr;
    Cause cause = Cause::kFull;
    // When there should be room.
    absl::Duration retry_delay;
    // kFull: works that wait, and how many make too many of them now.
    std::size_t waiting_count = 0;
    std::size_t waiting_limit = 0;
    // kLate: until the reply, as far as one can say, and until the deadline.
    absl::Duration expected;
    absl::Duration left;
    // kEnded: why nobody wants the work any more.
    absl::Status ended;

    // Tells the work, if there is one. Without a lock: the work ends there.
    void Tell() const;
  };

  explicit WorkQueue(const Options& options);

  // Takes `work` to wait. Turned away is a work that nobody wants any more; one
  // that would be late; and where too many wait, the newest of those whose
  // sender has most to be done, which may be `work` itself. But for the first
  // cause none that was begun is.
  Refusal Add(Work* work, SteadyTime now);

  // The next work, for a worker that is free, and begins a turn. Null if none
  // waits that may begin. If nobody wants it any more it is the refusal's and
  // takes no turn. If it was paused, its turn goes on, of which its own thread
  // is told: null.
  Work* Begin(SteadyTime now, Turn* turn, Refusal* refusal);

  // True if `work`, which has its turn, is to let others have theirs first:
  // those whose callers, or catalogs, had less. Charges what it took so far.
  bool ShouldPause(Work& work, SteadyTime now);

  // So it does: it waits as what was begun, and is neither turned away nor
  // taken out. `resumed` tells that its turn goes on. What a turn takes is
  // without its pauses, so that what was learned of works is the same with
  // them.
  void Pause(Work* work, SteadyTime now, CondVar* resumed);

  // Adds to `taken` works that wait and are of `first`'s group, up to `most`
  // and as many as are a worker's share of those that wait. They are of the
  // turn that `first` has.
  void TakeAlong(const Work& first, std::size_t most, SteadyTime now,
                 Works& taken);

  // A turn is over.
  void End(const Turn& turn, SteadyTime now);

  // Takes `work` out, if it waits, and not for its turn to go on.
  bool Remove(Work* work);
  // The same, and only if it does not go on with what had a turn before.
  bool RemoveUnlessBegun(Work* work);

  std::size_t waiting_count() const { return waiting_.count(); }
  // True if no work waits or has its turn.
  bool is_idle() const { return waiting_.count() == 0 && busy_count_ == 0; }
  // True if what comes now has its turn at once.
  bool has_free_turn() const {
    return waiting_.count() == 0 && busy_count_ < options_.thread_count;
  }
  // True if a work waits, and for nothing but Begin.
  bool can_begin() const;
  WorkCounts counts() const;

 private:
  // False while as many of its catalog as may have their turns.
  bool MayBegin(const Work& work) const;
  // True if `work` is not expected to end before its deadline: by how much.
  bool WouldBeLate(const Work& work, SteadyTime now, int flow,
                   Refusal& refusal) const;
  std::int64_t ExpectedNs(int flow) const;
  std::size_t LeastLimit() const;
  // True if one more may not wait: by how many.
  bool IsFull(Refusal& refusal) const;
  // `work`, whose turn has come, says how many others may wait.
  void SetLimit(const Work& work, SteadyTime now);
  void Join(Turn& turn, Work* work, SteadyTime now);
  void Resume(Work* work, SteadyTime now);

  const Options options_;
  FairQueue waiting_;
  WaitLimit limit_;
  std::array<ServiceTime, FairQueue::kFlows> times_;
  ServiceTime all_times_;
  // Of about the last eight turns.
  std::int64_t mean_turn_ns_ = 0;
  double mean_turn_works_ = 1;
  // The same, but for turns that may be paused a slice at most.
  std::int64_t mean_hold_ns_ = 0;
  int busy_count_ = 0;
  std::vector<std::uint64_t> catalogs_of_turns_;  // with most_of_catalog
  WorkCounts counts_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_WORK_QUEUE_H_
