#include "service/queue/patience.h"

#include <sched.h>

namespace attendant {
namespace {

// Returns true if the thread now has the policy.
bool TakePolicy(int policy) {
  const sched_param none = {};
  return sched_setscheduler(0, policy, &none) == 0;
}

}  // namespace

Patience& Patience::OfThread() {
  // The operator may have chosen another policy. Queried before any thread is
  // patient.
  static const bool may_change = sched_getscheduler(0) == SCHED_OTHER;
  thread_local Patience patience(may_change);
  return patience;
}

// A thread inherits its policy from its creator, which may be patient.
Patience::Patience(bool may_change)
    : may_change_(may_change),
      is_patient_(may_change && sched_getscheduler(0) != SCHED_OTHER) {}

void Patience::Brought(bool turned_away, SteadyTime now) {
  if (!may_change_) return;
  if (turned_away) {
    turned_away_ = now;
    if (!is_patient_) is_patient_ = TakePolicy(SCHED_BATCH);
  } else if (is_patient_ && absl::FromChrono(now - turned_away_) > kLasts) {
    is_patient_ = !TakePolicy(SCHED_OTHER);
  }
}

}  // namespace attendant
