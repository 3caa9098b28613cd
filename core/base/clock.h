// The time of day, which tests can replace so that they need not wait, and a
// steady time, which nobody can set.
#ifndef ATTENDANT_CORE_BASE_CLOCK_H_
#define ATTENDANT_CORE_BASE_CLOCK_H_

#include <chrono>

#include "absl/time/time.h"

namespace attendant {

// The time of day, for times that are shown or stored. It may be set forward or
// back. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;

  // Returns the system's clock, which is never deleted.
  static const Clock& System();
};

// A point on a clock that only moves forward, at the speed of real time. For
// deadlines and durations. Meaningless in another process.
using SteadyTime = std::chrono::steady_clock::time_point;

inline SteadyTime SteadyNow() { return SteadyTime::clock::now(); }

// Returns now + `duration`, or SteadyTime::max(), which never comes, if the
// clock can't represent that.
SteadyTime SteadyAfter(absl::Duration duration);

// Returns the duration until `time`: InfiniteDuration for SteadyTime::max(),
// zero or less if `time` has passed.
absl::Duration TimeUntil(SteadyTime time);

// Returns the duration since `time`.
inline absl::Duration TimeSince(SteadyTime time) {
  return absl::FromChrono(SteadyNow() - time);
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_CLOCK_H_
