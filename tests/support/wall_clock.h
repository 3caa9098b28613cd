// Shifts the time of day, as an administrator would set it.
#ifndef ATTENDANT_TESTS_SUPPORT_WALL_CLOCK_H_
#define ATTENDANT_TESTS_SUPPORT_WALL_CLOCK_H_

#include "absl/time/time.h"

namespace attendant {

// While it lives, this process and its libraries read a time of day that is off
// by `offset`; monotonic clocks are unaffected. Only one may live at a time. A
// test that uses it must link wall_clock.cc, which replaces the C library's
// functions.
class ShiftedWallClock {
 public:
  explicit ShiftedWallClock(absl::Duration offset);
  ~ShiftedWallClock();
  ShiftedWallClock(const ShiftedWallClock&) = delete;
  ShiftedWallClock& operator=(const ShiftedWallClock&) = delete;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_WALL_CLOCK_H_
