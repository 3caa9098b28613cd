// Pins cooperating threads to a core each while they wait.
#ifndef ATTENDANT_CORE_BASE_OWN_CORE_H_
#define ATTENDANT_CORE_BASE_OWN_CORE_H_

#include <sched.h>

namespace attendant {

// For a thread that waits for the other threads of a group that shares its
// work.
//
// The system wakes a thread near the one that woke it. While every core is
// busy, it looks for a better place only every few milliseconds, so two threads
// of the group may wait for each other on one core while another core runs only
// low-share work. A thread pinned to its own core wakes there. It is unpinned
// while it works, because threads that any library creates inherit its affinity
// for good.
//
// For the calling thread only.
class OwnCore {
 public:
  // For the index-th of `count` threads, 0 <= index < count. The thread gets a
  // core only if the process may use exactly `count` cores; otherwise all
  // methods do nothing.
  OwnCore(int index, int count);

  // True if the thread has a core and is not pinned to it.
  bool may_stay() const { return has_core_ && !stays_; }
  // Pins the thread to its core. If the system refuses, the thread has no core
  // from then on.
  void Stay();
  // Restores the thread's original affinity.
  void Leave();

 private:
  bool has_core_ = false;
  bool stays_ = false;
  cpu_set_t all_;
  cpu_set_t own_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_OWN_CORE_H_
