#include "service/connections/reset_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace attendant {
namespace {

TEST(ResetWatchTest, DropsWhoCancelsMoreInASecondThanItMayHaveAtOnce) {
  ResetWatch watch(/*max_stream_count=*/3);
  std::vector<std::string> dropped;
  watch.OnFlood([&](absl::string_view peer) { dropped.emplace_back(peer); });
  const SteadyTime start = SteadyNow();
  const auto cancel = [&](const std::string& peer, int count, int ms) {
    for (int i = 0; i < count; ++i) {
      watch.CountCancelled(peer, start + std::chrono::milliseconds(ms));
    }
  };
  cancel("a", 3, 0);
  cancel("b", 2, 999);
  EXPECT_EQ(watch.dropped_count(), 0);
  cancel("a", 3, 1000);  // another second
  cancel("b", 3, 1999);
  EXPECT_EQ(watch.dropped_count(), 0);
  cancel("b", 1, 1999);
  EXPECT_EQ(dropped, std::vector<std::string>({"b"}));
  // What it sent before is cancelled too.
  cancel("b", 10, 1999);
  EXPECT_EQ(dropped.size(), 1);
  cancel("b", 4, 3000);  // it came back
  EXPECT_EQ(dropped, std::vector<std::string>({"b", "b"}));
  EXPECT_EQ(watch.dropped_count(), 2);
}

}  // namespace
}  // namespace attendant
