#include "service/queue/retry_delay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/status.h"

namespace attendant {
namespace {

using ::testing::Ge;
using ::testing::Le;

TEST(RetryDelayTest, DelaysAreScattered) {
  std::set<absl::Duration> delays;
  for (int i = 0; i < 100; ++i) {
    const auto delay = RetryDelayOf(
        WithRetryDelay(absl::UnavailableError("x"), absl::Seconds(10)));
    EXPECT_THAT(*delay,
                ::testing::AllOf(Ge(absl::Seconds(5)), Le(absl::Seconds(15))));
    delays.insert(*delay);
  }
  EXPECT_GT(delays.size(), 50U);
}

}  // namespace
}  // namespace attendant
