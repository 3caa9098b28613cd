#include "core/base/interrupt.h"

#include <atomic>

#include "tests/support/status_matchers.h"

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
  interrupt.deadline = absl::Now() + absl::Hours(1);
  EXPECT_OK(interrupt.Check());
  interrupt.deadline = absl::Now();
  EXPECT_THAT(interrupt.Check(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                          HasSubstr("deadline")));
  interrupt.deadline = absl::InfinitePast();
  EXPECT_THAT(interrupt.Check(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                          HasSubstr("deadline")));
}

// Who went away does not want to hear about the time.
TEST(InterruptTest, CancellationComesFirst) {
  const std::atomic<bool> cancelled = true;
  Interrupt interrupt;
  interrupt.cancelled = &cancelled;
  interrupt.deadline = absl::InfinitePast();
  EXPECT_THAT(interrupt.Check(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("went away")));
}

}  // namespace
}  // namespace attendant
