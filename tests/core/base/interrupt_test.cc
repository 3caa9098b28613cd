#include "core/base/interrupt.h"

#include <atomic>
#include <thread>

#include "tests/core/catalog/failing_allocation.h"
#include "tests/support/look_counter.h"
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

// A deadline makes the caller, or gRPC on its behalf, cancel: the time of the
// cancellation decides which it was.
TEST(InterruptTest, ACancelAtTheDeadlineIsTheDeadline) {
  const std::atomic<bool> cancelled = true;
  const SteadyTime begin = SteadyNow();
  Interrupt interrupt;
  interrupt.cancelled = &cancelled;
  interrupt.deadline = begin + std::chrono::seconds(10);
  interrupt.caller_deadline = begin + std::chrono::seconds(9);
  const auto code_after = [&](int seconds) {
    return interrupt.EndedAt(begin + std::chrono::seconds(seconds)).code();
  };
  EXPECT_EQ(code_after(0), absl::StatusCode::kCancelled);
  EXPECT_EQ(code_after(8), absl::StatusCode::kCancelled);
  EXPECT_EQ(code_after(9), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(code_after(10), absl::StatusCode::kDeadlineExceeded);
  interrupt.cancelled = nullptr;
  EXPECT_EQ(code_after(9), absl::StatusCode::kOk);
  EXPECT_EQ(code_after(10), absl::StatusCode::kDeadlineExceeded);
}

TEST(InterruptTest, EndingNeedsNoMemory) {
  const std::atomic<bool> cancelled = true;
  Interrupt gone;
  gone.cancelled = &cancelled;
  Interrupt late;
  late.deadline = SteadyNow();
  for (const Interrupt* interrupt : {&gone, &late}) {
    EXPECT_FALSE(WithoutMemoryAt(1, [&] { interrupt->Check().IgnoreError(); }));
    EXPECT_FALSE(interrupt->Check().ok());
  }
}

TEST(VisitEachTest, LooksEverySomeThousand) {
  LookCounter looks;
  std::size_t sum = 0;
  EXPECT_OK(
      VisitEach(10000, looks.interrupt(), [&](std::size_t i) { sum += i; }));
  EXPECT_EQ(sum, 49995000u);
  EXPECT_EQ(looks.count, 3);
  EXPECT_OK(VisitEach(0, looks.interrupt(), [](std::size_t) { FAIL(); }));
}

TEST(VisitEachTest, VisitsNoMoreOnceItIsCancelled) {
  std::atomic<bool> cancelled = false;
  Interrupt interrupt;
  interrupt.cancelled = &cancelled;
  std::size_t count = 0;
  const auto visit = [&](std::size_t i) {
    cancelled = i >= 5000;
    ++count;
  };
  EXPECT_THAT(VisitEach(100000, interrupt, visit),
              StatusIs(absl::StatusCode::kCancelled, testing::_));
  EXPECT_EQ(count, 8192u);
}

}  // namespace
}  // namespace attendant
