#include "service/log/log_limiter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace attendant {
namespace {

TEST(LogLimiterTest, LetsSoManyOfEachSecondThroughAndCountsTheRest) {
  LogLimiter limiter(2);
  const SteadyTime start = SteadyNow();
  const auto admit_at = [&](int ms) {
    return limiter.Admit(start + std::chrono::milliseconds(ms));
  };
  EXPECT_EQ(admit_at(0), 0);
  EXPECT_EQ(admit_at(1), 0);
  EXPECT_EQ(admit_at(2), std::nullopt);
  EXPECT_EQ(admit_at(999), std::nullopt);
  EXPECT_EQ(admit_at(1000), 2);
  EXPECT_EQ(admit_at(1001), 0);
  EXPECT_EQ(admit_at(1002), std::nullopt);
  EXPECT_EQ(admit_at(60000), 1);
}

}  // namespace
}  // namespace attendant
