// Time of day as a dependency, so that tests need not wait, and time that
// nobody can set.
#ifndef ATTENDANT_CORE_BASE_CLOCK_H_
#define ATTENDANT_CORE_BASE_CLOCK_H_

#include <chrono>

#include "absl/time/time.h"

namespace attendant {

// The time of day: for what is shown or stored. It may be set, forward or back.
// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;

  // The system's clock. Never deleted.
  static const Clock& System();
};

// A moment of a clock that only goes forward, and as fast as time does: for
// deadlines and durations. Means nothing to another process.
using SteadyTime = std::chrono::steady_clock::time_point;

inline SteadyTime SteadyNow() { return SteadyTime::clock::now(); }

// The moment in so long; SteadyTime::max(), which never comes, where that is
// more than the clock can say.
SteadyTime SteadyAfter(absl::Duration duration);

// How long until `time`; InfiniteDuration if it is SteadyTime::max(), zero or
// less once it has come.
absl::Duration TimeUntil(SteadyTime time);

// How long since `time`.
inline absl::Duration TimeSince(SteadyTime time) {
  return absl::FromChrono(SteadyNow() - time);
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_CLOCK_H_
