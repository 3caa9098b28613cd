#include "core/base/clock.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "tests/support/wall_clock.h"

namespace attendant {
namespace {

TEST(ClockTest, OnlyTheTimeOfDayIsSet) {
  const absl::Time day_begin = Clock::System().Now();
  const SteadyTime begin = SteadyNow();
  {
    const ShiftedWallClock tomorrow(absl::Hours(24));
    EXPECT_GT(Clock::System().Now(), day_begin + absl::Hours(23));
    EXPECT_LT(TimeSince(begin), absl::Hours(1));
  }
  const ShiftedWallClock yesterday(-absl::Hours(24));
  EXPECT_LT(Clock::System().Now(), day_begin - absl::Hours(23));
  EXPECT_GE(TimeSince(begin), absl::ZeroDuration());
}

TEST(ClockTest, SteadyTimesAreAsFarAsWasAsked) {
  const SteadyTime later = SteadyAfter(absl::Hours(1));
  EXPECT_LE(TimeUntil(later), absl::Hours(1));
  EXPECT_GT(TimeUntil(later), absl::Minutes(30));
  const SteadyTime earlier = SteadyAfter(-absl::Hours(1));
  EXPECT_LE(TimeUntil(earlier), -absl::Hours(1));
  EXPECT_GE(TimeSince(earlier), absl::Hours(1));
}

TEST(ClockTest, WhatIsTooFarNeverComes) {
  EXPECT_EQ(SteadyAfter(absl::InfiniteDuration()), SteadyTime::max());
  EXPECT_EQ(SteadyAfter(absl::Hours(24 * 365 * 300)), SteadyTime::max());
  EXPECT_EQ(TimeUntil(SteadyTime::max()), absl::InfiniteDuration());
  EXPECT_LT(SteadyAfter(-absl::InfiniteDuration()), SteadyNow());
}

}  // namespace
}  // namespace attendant
