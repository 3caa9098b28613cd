#include "client/load/send/rate_profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/chi_square.h"

namespace attendant {
namespace {

TEST(RateProfileTest, ARampsRequestsComeSoonerAndSooner) {
  // 10 t^2: a second's 10, then 30, 50, 70, 90.
  const RateProfile ramp = RateProfile::Ramp(1e-9, 100, absl::Seconds(5));
  EXPECT_NEAR(ramp.count(), 250, 1e-6);
  for (const double t : {0.5, 1.0, 2.0, 4.9}) {
    EXPECT_NEAR(absl::ToDoubleSeconds(ramp.TimeOf(10 * t * t)), t, 1e-6);
  }
  EXPECT_EQ(ramp.TimeOf(250.5), absl::Seconds(5));
}

TEST(RateProfileTest, ARampMayGoDown) {
  // 100 t - 10 t^2.
  const RateProfile ramp = RateProfile::Ramp(100, 20, absl::Seconds(4));
  EXPECT_NEAR(ramp.count(), 240, 1e-9);
  for (const double t : {0.1, 1.0, 3.9}) {
    EXPECT_NEAR(absl::ToDoubleSeconds(ramp.TimeOf(100 * t - 10 * t * t)), t,
                1e-9);
  }
}

TEST(RateProfileTest, StepsFollowEachOtherForTheSameTime) {
  const RateProfile steps = RateProfile::Steps({10, 20, 40}, absl::Seconds(6));
  EXPECT_EQ(steps.duration(), absl::Seconds(6));
  EXPECT_DOUBLE_EQ(steps.count(), 140);
  EXPECT_EQ(steps.TimeOf(0), absl::ZeroDuration());
  EXPECT_EQ(steps.TimeOf(20), absl::Seconds(2));
  EXPECT_EQ(steps.TimeOf(40), absl::Seconds(3));
  EXPECT_EQ(steps.TimeOf(100), absl::Seconds(5));
  EXPECT_EQ(steps.TimeOf(1000), absl::Seconds(6));
}

TEST(RateProfileTest, TheWarmupGoesAtTheFirstRate) {
  const RateProfile warm =
      RateProfile::Ramp(10, 30, absl::Seconds(2)).WithWarmup(absl::Seconds(3));
  EXPECT_EQ(warm.duration(), absl::Seconds(5));
  EXPECT_DOUBLE_EQ(warm.count(), 70);
  EXPECT_EQ(warm.TimeOf(20), absl::Seconds(2));
  EXPECT_EQ(RateProfile::Constant(5, absl::Seconds(2))
                .WithWarmup(absl::ZeroDuration())
                .stages()
                .size(),
            1u);
}

TEST(RateProfileTest, SlicesAreStepsAndPiecesOfRamps) {
  EXPECT_EQ(RateProfile::Constant(5, absl::Seconds(1)).Slices().size(), 1u);
  EXPECT_EQ(RateProfile::Steps({1, 2, 3}, absl::Seconds(3)).Slices().size(),
            3u);
  const auto slices = RateProfile::Ramp(0, 40, absl::Seconds(20)).Slices();
  ASSERT_EQ(slices.size(), 20u);
  EXPECT_DOUBLE_EQ(slices[3].first_rate, 6);
  EXPECT_DOUBLE_EQ(slices[3].last_rate, 8);
  EXPECT_EQ(slices[3].duration, absl::Seconds(1));
}

TEST(ScheduleTest, FixedArrivalsLieAtEqualDistances) {
  Schedule schedule(RateProfile::Constant(4, absl::Seconds(30)),
                    Arrivals::kFixed, 1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(schedule.Next(), absl::Milliseconds(250 * i));
  }
}

TEST(ScheduleTest, PoissonArrivalsHaveTheRateAndSpreadOfTheirProcess) {
  constexpr int kCount = 100000;
  const RateProfile profile = RateProfile::Constant(1000, absl::Seconds(1000));
  Schedule schedule(profile, Arrivals::kPoisson, 7);
  Schedule same(profile, Arrivals::kPoisson, 7);
  Schedule other(profile, Arrivals::kPoisson, 8);
  double sum = 0;
  double sum_square = 0;
  absl::Duration last = absl::ZeroDuration();
  bool differs = false;
  for (int i = 0; i < kCount; ++i) {
    const absl::Duration due = schedule.Next();
    EXPECT_EQ(due, same.Next());
    differs |= due != other.Next();
    ASSERT_GE(due, last);
    const double gap_ms = absl::ToDoubleMilliseconds(due - last);
    last = due;
    sum += gap_ms;
    sum_square += gap_ms * gap_ms;
  }
  EXPECT_TRUE(differs);
  // Gaps have mean 1 ms and deviation 1 ms: the mean of kCount of them is
  // within 5 / sqrt(kCount), and that of their squares, 2 with deviation
  // sqrt(20), within 5 sqrt(20 / kCount).
  EXPECT_NEAR(sum / kCount, 1, 5 / std::sqrt(kCount));
  EXPECT_NEAR(sum_square / kCount, 2, 5 * std::sqrt(20.0 / kCount));
}

TEST(RateProfileTest, WhatComesAfterACutIsGone) {
  const auto steps = RateProfile::Steps({10, 20}, absl::Seconds(20)).Slices();
  EXPECT_EQ(CutAt(absl::ZeroDuration(), steps).size(), 0u);
  EXPECT_EQ(CutAt(absl::Seconds(10), steps).size(), 1u);
  EXPECT_EQ(CutAt(absl::Seconds(30), steps).size(), 2u);
  const auto ramp = CutAt(
      absl::Seconds(5), RateProfile::Ramp(10, 30, absl::Seconds(20)).stages());
  ASSERT_EQ(ramp.size(), 1u);
  EXPECT_EQ(ramp[0].duration, absl::Seconds(5));
  EXPECT_EQ(ramp[0].first_rate, 10);
  EXPECT_EQ(ramp[0].last_rate, 15);
}

// Each tenth of the time has as many requests as the integral of the rate says.
TEST(ScheduleTest, PoissonArrivalsFollowARamp) {
  constexpr int kPieces = 10;
  const RateProfile ramp = RateProfile::Ramp(100, 1900, absl::Seconds(100));
  Schedule schedule(ramp, Arrivals::kPoisson, 11);
  std::vector<std::int64_t> counts(kPieces);
  std::int64_t total = 0;
  for (absl::Duration due = schedule.Next(); due < ramp.duration();
       due = schedule.Next()) {
    ++counts[static_cast<std::size_t>(absl::ToDoubleSeconds(due) / 10)];
    ++total;
  }
  EXPECT_NEAR(static_cast<double>(total), 100000, 5 * std::sqrt(100000));
  double statistic = 0;
  for (int i = 0; i < kPieces; ++i) {
    const double expected = 10 * (100 + 180 * (i + 0.5));
    const double off = static_cast<double>(counts[i]) - expected;
    statistic += off * off / expected;
  }
  EXPECT_GT(ChiSquarePValue(statistic, kPieces), kMinPValue);
}

}  // namespace
}  // namespace attendant
