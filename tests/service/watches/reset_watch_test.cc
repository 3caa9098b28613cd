#include "service/watches/reset_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace attendant {
namespace {

TEST(ResetWatchTest, DropsWhoCancelsMoreInASecondThanItMayHaveAtOnce) {
  ArrivalWatch arrivals(/*max_stream_count=*/3);
  ResetWatch watch(/*max_stream_count=*/3, &arrivals);
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
  // Calls that it sent earlier are cancelled too.
  cancel("b", 10, 1999);
  EXPECT_EQ(dropped.size(), 1);
  cancel("b", 4, 3000);  // it came back
  EXPECT_EQ(dropped, std::vector<std::string>({"b", "b"}));
  EXPECT_EQ(watch.dropped_count(), 2);
}

TEST(ResetWatchTest, DropsWhoHasMoreThanTwiceWhatItMayHave) {
  ArrivalWatch arrivals(/*max_stream_count=*/3);
  ResetWatch watch(/*max_stream_count=*/3, &arrivals);
  std::vector<std::string> dropped;
  watch.OnFlood([&](absl::string_view peer) { dropped.emplace_back(peer); });
  const SteadyTime now = SteadyNow();
  const auto open = [&](const std::string& peer, int count, int more) {
    for (int i = 0; i < count; ++i) watch.CountOpen(peer, more, now);
  };
  open("a", 6, 1);
  open("b", 6, 1);
  open("a", 2, -1);
  open("a", 2, 1);
  EXPECT_TRUE(dropped.empty());
  open("b", 3, 1);
  EXPECT_EQ(dropped, std::vector<std::string>({"b"}));
}

}  // namespace
}  // namespace attendant
