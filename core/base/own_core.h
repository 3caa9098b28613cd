// Threads that have a core each.
#ifndef ATTENDANT_CORE_BASE_OWN_CORE_H_
#define ATTENDANT_CORE_BASE_OWN_CORE_H_

#include <sched.h>

namespace attendant {

// Where a thread waits that is one of several, which share their work.
//
// The system wakes a thread beside the one that woke it and, while every core
// has something to do, looks for a better place only every few milliseconds:
// two of these threads may so wait for each other on one core while the other
// has nothing but work of a low share to do. A thread that is kept to a core
// wakes there. While it works it goes where it may: threads that it makes, for
// whatever library, may go where their maker may, for good.
//
// Of the calling thread; not to be used by another.
class OwnCore {
 public:
  // The index-th of `count` threads. It has a core if there are as many as it
  // may use: else nothing ever happens. 0 <= index < count.
  OwnCore(int index, int count);

  // True if it has a core, and is not kept to it.
  bool may_stay() const { return has_core_ && !stays_; }
  // Keeps the thread to its core, if the system lets it; else it has none.
  void Stay();
  // Lets it go where it could before.
  void Leave();

 private:
  bool has_core_ = false;
  bool stays_ = false;
  cpu_set_t all_;
  cpu_set_t own_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_OWN_CORE_H_
