// Runs work that yields the processor to other work.
#ifndef ATTENDANT_CORE_BASE_SPARE_TIME_H_
#define ATTENDANT_CORE_BASE_SPARE_TIME_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace attendant {

enum class Share {
  kEven,  // the same as any other thread that wants a core
  kLow,   // a tenth of a core that others want too
  kIdle,  // only what others leave, possibly nothing
};

// Gives the calling thread this share for the rest of its life: a thread can't
// raise its share again without privileges. If the system refuses, the thread
// continues unchanged.
void TakeShare(Share share);

// Runs `work` with `share` on a new thread, waits until it is done, and
// rethrows what it throws. If the system has no more threads, the calling
// thread does the work at its own share. `work` should not hold locks that
// others wait for, as they would wait until it gets a core.
void RunInSpareTime(Share share, absl::FunctionRef<void()> work);

// Call as often as possible in work that may have the idle share. Every .2 ms a
// thread of that share yields its core, and sleeps for a moment while the
// machine has more runnable threads than cores; any other call takes
// nanoseconds. Don't call while others wait for a lock of this thread, or
// before the thread took its share. If the process may not use every core, it
// can't tell who wants the cores that it may use, so threads don't sleep.
//
// The scheduler alone does not do this: it may believe that an idle-share
// thread is owed the core and reconsider only after a few milliseconds, and it
// lets two other threads share a core while a third core runs only idle-share
// work, because it moves threads only to cores that it sees idle.
void MakeWay();

// Calls MakeWay on every 256th pass, for loops whose passes are too short to
// call it on each.
inline void MakeWayAt(std::int64_t pass) {
  if (pass % 256 == 0) MakeWay();
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_SPARE_TIME_H_
