#include "service/watches/read_watch.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <vector>

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using ReadConnections = std::vector<ReadWatch::Connection>;

constexpr std::int64_t kMuch = ReadWatch::kMuch;

TEST(ReadWatchTest, WhoKeepsAnotherUnreadGoes) {
  ReadWatch watch;
  const auto look = [&](std::int64_t i) {
    return watch.Look(ReadConnections{{4, i * kMuch + 9, 9},
                                      {5, 10 + i, 10 + i},
                                      {6, i * (kMuch - 1) + 9, 9}});
  };
  for (std::int64_t i = 0; i < ReadWatch::kLooks; ++i) {
    EXPECT_THAT(look(i), IsEmpty());
  }
  EXPECT_THAT(look(ReadWatch::kLooks), ElementsAre(4));
  // After a pause counting starts again.
  EXPECT_THAT(watch.Look({}), IsEmpty());
  EXPECT_THAT(look(ReadWatch::kLooks + 1), IsEmpty());
}

TEST(ReadWatchTest, TheLongerSomebodyWaitsTheLessIsMuch) {
  ReadWatch watch;
  constexpr std::int64_t kLeast = ReadWatch::kMinMuch;
  std::vector<int> ended;
  std::int64_t looks = 0;
  while (ended.empty() && looks < 100) {
    ended = watch.Look(ReadConnections{{4, looks * kLeast + 9, 9},
                                       {5, 10 + looks, 10 + looks},
                                       {6, looks * (kLeast - 1) + 9, 9},
                                       {7, looks * kMuch / 4 + 9, 9}});
    if (looks == ReadWatch::kLooks + 2) {
      EXPECT_THAT(ended, ElementsAre(7));
      ended.clear();
    }
    ++looks;
    if (looks > ReadWatch::kLooks + 2) watch.Forget(7);
  }
  // 64 times less.
  EXPECT_EQ(looks, 1 + ReadWatch::kLooks + 6);
  EXPECT_THAT(ended, ElementsAre(4));
}

TEST(ReadWatchTest, IsBehindWhileBytesWaitUnread) {
  ReadWatch watch;
  const auto is_behind = [&](const ReadConnections& connections) {
    watch.Look(connections);
    return watch.is_behind();
  };
  EXPECT_FALSE(is_behind({{4, 9, 9}}));  // they may just have come
  EXPECT_TRUE(is_behind({{4, 9, 9}}));
  EXPECT_TRUE(is_behind({{4, 20, 20}}));
  EXPECT_FALSE(is_behind({{4, 20, 19}}));
  EXPECT_FALSE(is_behind({{4, 20, 19, 1}}));  // its client takes nothing
  EXPECT_TRUE(is_behind({{4, 20, 19}}));
  EXPECT_FALSE(is_behind({}));
}

TEST(ReadWatchTest, WhoseBytesWereJustReadIsNotForgotten) {
  ReadWatch watch;
  for (std::int64_t i = 0; i <= ReadWatch::kLooks; ++i) {
    const std::int64_t waiting = i % 2 == 0 ? 9 : 0;
    const std::vector<int> ended = watch.Look(
        ReadConnections{{4, i * kMuch + waiting, waiting}, {5, 9, 9}});
    EXPECT_EQ(ended.size(), i < ReadWatch::kLooks ? 0U : 1U);
    EXPECT_TRUE(watch.Knows(4));
  }
  // Continues until nothing arrives any more.
  watch.Look(ReadConnections{{4, (ReadWatch::kLooks + 1) * kMuch, 0}});
  EXPECT_TRUE(watch.Knows(4));
  watch.Look(ReadConnections{{4, (ReadWatch::kLooks + 1) * kMuch, 0}});
  EXPECT_FALSE(watch.Knows(4));
}

TEST(ReadWatchTest, WhoIsUnreadByOwnFaultIsNotKept) {
  ReadWatch watch;
  for (std::int64_t i = 0; i < 10; ++i) {
    watch.Forget(6);  // each time another connection
    EXPECT_THAT(watch.Look(ReadConnections{
                    {4, i * kMuch + 9, 9}, {5, 9, 9, 1}, {6, 5, 5}}),
                IsEmpty());
  }
}

TEST(ReadWatchTest, WhereAllAreReadNobodyGoes) {
  ReadWatch watch;
  for (std::int64_t i = 1; i < 10; ++i) {
    // One or the other waits now and then.
    EXPECT_THAT(watch.Look(ReadConnections{{4, 2 * i * kMuch, kMuch},
                                           {5, i / 2 + 3, 3},
                                           {static_cast<int>(10 + i), 3, 3}}),
                IsEmpty());
  }
}

TEST(ReadWatchTest, WhereNobodyIsReadNobodyGoes) {
  ReadWatch watch;
  for (std::int64_t i = 1; i < 10; ++i) {
    EXPECT_THAT(
        watch.Look(ReadConnections{{4, i * kMuch, i * kMuch}, {5, 9, 9}}),
        IsEmpty());
  }
}

}  // namespace
}  // namespace attendant
