// Work that makes way for other work.
#ifndef ATTENDANT_CORE_BASE_SPARE_TIME_H_
#define ATTENDANT_CORE_BASE_SPARE_TIME_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace attendant {

enum class Share {
  kEven,  // as much as anybody else who wants a core
  kLow,   // a tenth of a core that others want too
  kIdle,  // what others leave, which may be nothing
};

// Gives the calling thread this share for the rest of its life: it can't be
// taken back without privileges. Where the system refuses, the thread goes on
// as it is.
void TakeShare(Share share);

// Runs `work` on a thread of its own that gets this share of the processor and
// makes way at once, and returns when it is done; throws what it throws. Where
// the system has no more threads, the calling one does it, at its own share. It
// should not hold locks that others wait for: they would wait as long.
void RunInSpareTime(Share share, absl::FunctionRef<void()> work);

// To be called by work that may have the idle share, as often as it can: every
// .2 ms a thread of that share lets others work, and sleeps while more threads
// of the machine want a core than it has. Takes nanoseconds otherwise. Not
// where others wait for a lock, and not before the thread took its share. Where
// the process may not use every core, nobody knows who wants those that it may:
// threads then don't sleep.
//
// The system alone does not do this: it may take such a thread for the one that
// is owed the core, and looks again a few milliseconds later; and it lets two
// others share a core while the other has only this, as it moves threads to
// cores that it sees idle.
void MakeWay();

// The same in a loop whose passes are too short for it: for every 256th.
inline void MakeWayAt(std::int64_t pass) {
  if (pass % 256 == 0) MakeWay();
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_SPARE_TIME_H_
