#include "service/http/give_way.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

const SteadyTime kBegin = SteadyTime() + std::chrono::hours(1);

Guest From(int host, bool has_spoken, int since_ms = 0) {
  return {absl::StrCat("192.0.2.", host), has_spoken,
          kBegin + std::chrono::milliseconds(since_ms)};
}

TEST(GiveWayTest, WhoeverSaidNothingGoesFirst) {
  const std::vector<Guest> guests = {From(1, true), From(1, false),
                                     From(1, false), From(1, true)};
  EXPECT_EQ(WhoGivesWay(guests, kBegin), 1u);
}

TEST(GiveWayTest, WorkThatWasBegunIsLeftToEnd) {
  const std::vector<Guest> guests = {From(1, true, 0), From(1, true, 100),
                                     From(1, true, 200)};
  const auto after = [&](int ms) {
    return WhoGivesWay(guests, kBegin + std::chrono::milliseconds(ms));
  };
  EXPECT_EQ(after(300), 2u);
  EXPECT_EQ(after(999), 2u);
  EXPECT_EQ(after(1000), 0u);
}

TEST(GiveWayTest, AFloodGivesWayToItself) {
  const std::vector<Guest> guests = {From(1, false), From(2, true),
                                     From(3, false), From(2, true)};
  EXPECT_EQ(WhoGivesWay(guests, kBegin), 3u);
  EXPECT_EQ(WhoGivesWay(guests, kBegin + std::chrono::hours(1)), 1u);
}

TEST(GiveWayTest, OneAloneGives) {
  EXPECT_EQ(WhoGivesWay(std::vector<Guest>{From(0, true)}, kBegin), 0u);
}

}  // namespace
}  // namespace attendant
