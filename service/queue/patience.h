// Threads that let busy ones go on.
#ifndef ATTENDANT_SERVICE_QUEUE_PATIENCE_H_
#define ATTENDANT_SERVICE_QUEUE_PATIENCE_H_

#include "absl/time/time.h"
#include "core/base/clock.h"

namespace attendant {

// While works are turned away, a thread that brings more takes a core from
// those that do them, for a message at a time: neither finds in the caches what
// it left there. A patient thread does not interrupt others as it wakes up
// (SCHED_BATCH, sched(7)): it has its turn when theirs is over, milliseconds
// later, and then reads all that came meanwhile. Of the calling thread; not to
// be used by another.
class Patience {
 public:
  // After the last work that was turned away: what comes once others may wait
  // again should not be late.
  static constexpr absl::Duration kLasts = absl::Milliseconds(100);

  static Patience& OfThread();

  // `may_change`: its policy, which else is somebody's wish.
  explicit Patience(bool may_change);

  // The thread brought a work: it, or another in its stead, was turned away
  // since too many wait or it would be late, or nothing was.
  void Brought(bool turned_away, SteadyTime now);

 private:
  const bool may_change_;
  bool is_patient_;
  SteadyTime turned_away_{};  // something, last; at first, long ago
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_PATIENCE_H_
