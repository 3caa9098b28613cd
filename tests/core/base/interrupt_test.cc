#include "core/base/interrupt.h"

#include <atomic>
#include <thread>

#include "tests/support/status_matchers.h"
#include "tests/support/wall_clock.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

TEST(InterruptTest, DefaultNeverInterrupts) { EXPECT_OK(Interrupt().Check()); }

TEST(InterruptTest, FlagCancels) {
  std::atomic<bool> cancelled = false;
  Interrupt interrupt;
  interrupt.cancelled = &cancelled;
  EXPECT_OK(interrupt.Check());
  cancelled = true;
  EXPECT_THAT(interrupt.Check(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("went away")));
}

TEST(InterruptTest, PassedDeadlineInterrupts) {
  Interrupt interrupt;
  interrupt.deadline = SteadyAfter(absl::Hours(1));
  EXPECT_OK(interrupt.Check());
  interrupt.deadline = SteadyNow();
  EXPECT_THAT(interrupt.Check(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                          HasSubstr("deadline")));
  interrupt.deadline = SteadyTime::min();
  EXPECT_THAT(interrupt.Check(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                          HasSubstr("deadline")));
}

TEST(InterruptTest, TheTimeOfDayHasNoPartInIt) {
  Interrupt interrupt;
  interrupt.deadline = SteadyAfter(absl::Hours(1));
  {
    const ShiftedWallClock tomorrow(absl::Hours(24));
    EXPECT_OK(interrupt.Check());
  }
  const ShiftedWallClock yesterday(-absl::Hours(24));
  interrupt.deadline = SteadyAfter(absl::Milliseconds(1));
  while (interrupt.Check().ok()) std::this_thread::yield();
  EXPECT_THAT(interrupt.Check(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, testing::_));
}

// Who went away does not want to hear about the time.
TEST(InterruptTest, CancellationComesFirst) {
  const std::atomic<bool> cancelled = true;
  Interrupt interrupt;
  interrupt.cancelled = &cancelled;
  interrupt.deadline = SteadyTime::min();
  EXPECT_THAT(interrupt.Check(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("went away")));
}

}  // namespace
}  // namespace attendant
