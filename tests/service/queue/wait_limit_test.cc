// How many works may wait.
#include "service/queue/wait_limit.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "absl/time/time.h"
#include "tests/service/queue/fake_work.h"

namespace attendant {
namespace {

constexpr absl::Duration kTarget = absl::Milliseconds(10);

// Reports a work that began; 30 works begin within the target.
void Took(WaitLimit& limit, double entered_ms, double now_ms,
          std::size_t waiting_count) {
  limit.Took(At(entered_ms), At(now_ms), waiting_count, kTarget,
             /*in_target=*/30, /*least=*/4);
}

TEST(WaitLimitTest, IsLoweredToWhatMeetsTheTargetAndOnceForEachRound) {
  WaitLimit limit(1000, 2);
  EXPECT_EQ(limit.limit(), 1000U);
  Took(limit, 0, 9, 500);
  EXPECT_EQ(limit.limit(), 1000U);
  Took(limit, 0, 12.5, 99);
  EXPECT_EQ(limit.limit(), 1000U);
  Took(limit, 40, 62.4, 99);
  EXPECT_EQ(limit.limit(), 1000U);
  Took(limit, 40, 62.5, 99);  // for 50 ms now
  EXPECT_EQ(limit.limit(), 30U);
  // This one waited behind the earlier hundred.
  Took(limit, 51, 100, 90);
  EXPECT_EQ(limit.limit(), 30U);
  Took(limit, 63, 200, 29);
  EXPECT_EQ(limit.limit(), 27U);
  for (int round = 2; round < 100; ++round) {
    Took(limit, 100 * round + 1, 100 * round + 100, 3);
  }
  EXPECT_EQ(limit.limit(), 4U);
}

TEST(WaitLimitTest, AQueueThatGoesByItselfIsLeftAlone) {
  WaitLimit limit(1000, 2);
  for (int i = 0; i < 10; ++i) {
    Took(limit, 100 * i, 100 * i + 20, 500);
    Took(limit, 100 * i + 20, 100 * i + 60, 100);
    Took(limit, 100 * i + 60, 100 * i + 69, 5);  // in time
  }
  EXPECT_EQ(limit.limit(), 1000U);
}

TEST(WaitLimitTest, GrowsByAStepForEachRoundWhileOthersAreRefused) {
  WaitLimit limit(1000, 2);
  Took(limit, 0, 20, 39);
  Took(limit, 100, 120, 39);
  EXPECT_EQ(limit.limit(), 30U);
  for (int i = 0; i < 100; ++i) Took(limit, 120, 125, 19);
  EXPECT_EQ(limit.limit(), 30U);
  for (int i = 0; i < 30; ++i) {
    limit.Refused();
    Took(limit, 120, 125, 19);
  }
  EXPECT_EQ(limit.limit(), 31U);
}

TEST(WaitLimitTest, IsForgottenWhenNothingWaits) {
  WaitLimit limit(1000, 2);
  Took(limit, 0, 20, 39);
  Took(limit, 100, 120, 39);
  EXPECT_EQ(limit.limit(), 30U);
  Took(limit, 120, 125, 0);
  EXPECT_EQ(limit.limit(), 1000U);
  Took(limit, 120, 220, 39);  // the first of others
  EXPECT_EQ(limit.limit(), 1000U);
}

TEST(WaitLimitTest, NeverGrowsBeyondTheMost) {
  WaitLimit limit(10, 2);
  for (int i = 0; i < 100; ++i) {
    limit.Refused();
    Took(limit, i, i + 1, 5);
  }
  EXPECT_EQ(limit.limit(), 10U);
}

}  // namespace
}  // namespace attendant
