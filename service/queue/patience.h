// Lets threads that add works yield to busy workers.
#ifndef ATTENDANT_SERVICE_QUEUE_PATIENCE_H_
#define ATTENDANT_SERVICE_QUEUE_PATIENCE_H_

#include "absl/time/time.h"
#include "core/base/clock.h"

namespace attendant {

// While works are refused, a thread that brings more takes a core from the
// workers for one message at a time, and each evicts the other's data from the
// caches. A patient thread does not preempt others when it wakes up
// (SCHED_BATCH, sched(7)): it runs when their time slice is over, milliseconds
// later, and then reads everything that has arrived. Belongs to the thread that
// created it; other threads must not use it.
class Patience {
 public:
  // How long a thread stays patient after the last refusal: once works may wait
  // again, new ones should not be delayed.
  static constexpr absl::Duration kLasts = absl::Milliseconds(100);

  static Patience& OfThread();

  // `may_change`: the thread's policy may be changed; false if someone chose
  // it.
  explicit Patience(bool may_change);

  // Call after the thread has added a work. `turned_away`: that work, or
  // another in its place, was refused because too many wait or it would be
  // late.
  void Brought(bool turned_away, SteadyTime now);

 private:
  const bool may_change_;
  bool is_patient_;
  SteadyTime turned_away_{};  // last refusal; initially long ago
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_PATIENCE_H_
