// The time of day, set as an administrator sets it.
#ifndef ATTENDANT_TESTS_SUPPORT_WALL_CLOCK_H_
#define ATTENDANT_TESTS_SUPPORT_WALL_CLOCK_H_

#include "absl/time/time.h"

namespace attendant {

// While it lives this process, libraries and all, reads a time of day that is
// off by `offset`; time that nobody can set goes on as it did. One at a time.
// A test that uses it links wall_clock.cc, which stands in for the C library's
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
