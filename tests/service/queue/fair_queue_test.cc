// Whose turn it is.
#include "service/queue/fair_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "tests/service/queue/fake_work.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::IsNull;

TEST(FairQueueTest, OneLineIsFirstInFirstOut) {
  FairQueue queue;
  FakeWork works[3];
  for (FakeWork& work : works) queue.Push(&work, kMs);
  EXPECT_EQ(queue.count(), 3U);
  EXPECT_EQ(queue.expected_ns(), 3 * kMs);
  for (FakeWork& work : works) EXPECT_EQ(queue.Pop(), &work);
  EXPECT_THAT(queue.Pop(), IsNull());
  EXPECT_EQ(queue.expected_ns(), 0);
}

TEST(FairQueueTest, WhatMayNotBeginLetsOthersPass) {
  FairQueue queue;
  FakeWork first({1, 1});
  FakeWork second({1, 1 + FairQueue::kCatalogs});  // in the same line
  FakeWork third({1, 2});
  for (FakeWork* work : {&first, &second, &third}) queue.Push(work, kMs);
  const auto none = [](const Work&) { return false; };
  const auto not_first = [&](const Work& work) { return &work != &first; };
  EXPECT_FALSE(queue.CanPop(none));
  EXPECT_THAT(queue.Pop(none), IsNull());
  EXPECT_TRUE(queue.CanPop(not_first));
  EXPECT_EQ(queue.Pop(not_first), &second);
  EXPECT_EQ(queue.Pop(not_first), &third);
  EXPECT_FALSE(queue.CanPop(not_first));
  EXPECT_EQ(queue.Pop(), &first);
}

// Returns the caller of each turn while works of all callers wait.
std::vector<int> CallersOfTurns(FairQueue& queue, int count) {
  std::vector<int> callers;
  for (int i = 0; i < count; ++i) {
    Work* work = queue.Pop();
    callers.push_back(static_cast<FakeWork*>(work)->group()[0] - '0');
  }
  return callers;
}

TEST(FairQueueTest, ACallerOfManyWorksKeepsNobodyFromTheirTurn) {
  FairQueue queue;
  std::deque<FakeWork> works;
  for (int i = 0; i < 100; ++i) {
    queue.Push(&works.emplace_back(FlowKey{1, 0}, "1"), kMs);
  }
  queue.Push(&works.emplace_back(FlowKey{2, 0}, "2"), kMs);
  queue.Push(&works.emplace_back(FlowKey{2, 0}, "2"), kMs);
  EXPECT_THAT(CallersOfTurns(queue, 5), ElementsAre(1, 2, 1, 2, 1));
}

TEST(FairQueueTest, SharesAreOfTimeAndNotOfWorks) {
  FairQueue queue;
  std::deque<FakeWork> works;
  for (int i = 0; i < 100; ++i) {
    queue.Push(&works.emplace_back(FlowKey{1, 0}, "1"), 9 * kMs);
    queue.Push(&works.emplace_back(FlowKey{2, 0}, "2"), kMs);
  }
  const std::vector<int> callers = CallersOfTurns(queue, 100);
  EXPECT_EQ(std::ranges::count(callers, 1), 10);
}

TEST(FairQueueTest, WhatAWorkReallyTookIsWhatCounts) {
  FairQueue queue;
  std::deque<FakeWork> works;
  for (int i = 0; i < 10; ++i) {
    queue.Push(&works.emplace_back(FlowKey{1, 0}, "1"), kMs);
    queue.Push(&works.emplace_back(FlowKey{2, 0}, "2"), kMs);
  }
  EXPECT_THAT(CallersOfTurns(queue, 1), ElementsAre(1));
  queue.Charge(FairQueue::FlowOf({1, 0}), 3 * kMs);
  EXPECT_THAT(CallersOfTurns(queue, 5), ElementsAre(2, 2, 2, 2, 1));
}

TEST(FairQueueTest, IdlenessSavesNothingUp) {
  // From another caller, and for another catalog of the same caller.
  for (const FlowKey late : {FlowKey{2, 0}, FlowKey{1, 1}}) {
    FairQueue queue;
    std::deque<FakeWork> works;
    for (int i = 0; i < 60; ++i) {
      queue.Push(&works.emplace_back(FlowKey{1, 0}, "1"), kMs);
    }
    CallersOfTurns(queue, 40);
    for (int i = 0; i < 20; ++i) {
      queue.Push(&works.emplace_back(late, "2"), kMs);
    }
    const std::vector<int> turns = CallersOfTurns(queue, 20);
    EXPECT_EQ(std::ranges::count(turns, 2), 10);
  }
}

TEST(FairQueueTest, WhatWasDoneWhileNobodyWaitedIsForgotten) {
  FairQueue queue;
  std::deque<FakeWork> works;
  for (int i = 0; i < 10; ++i) {
    queue.Push(&works.emplace_back(FlowKey{1, 0}, "1"), 1000 * kMs);
    queue.Pop();
  }
  for (int i = 0; i < 20; ++i) {
    queue.Push(&works.emplace_back(FlowKey{1, 0}, "1"), kMs);
    queue.Push(&works.emplace_back(FlowKey{2, 0}, "2"), kMs);
  }
  const std::vector<int> callers = CallersOfTurns(queue, 20);
  EXPECT_EQ(std::ranges::count(callers, 1), 10);
}

TEST(FairQueueTest, ACallersCatalogsShareWhatIsTheCallers) {
  FairQueue queue;
  std::deque<FakeWork> works;
  for (int i = 0; i < 40; ++i) {
    queue.Push(&works.emplace_back(FlowKey{1, 0}, "0"), kMs);
    queue.Push(&works.emplace_back(FlowKey{1, 1}, "1"), kMs);
    queue.Push(&works.emplace_back(FlowKey{2, 0}, "2"), kMs);
  }
  const std::vector<int> turns = CallersOfTurns(queue, 40);
  EXPECT_EQ(std::ranges::count(turns, 0), 10);
  EXPECT_EQ(std::ranges::count(turns, 1), 10);
  EXPECT_EQ(std::ranges::count(turns, 2), 20);
}

TEST(FairQueueTest, TheLongestLineGivesWay) {
  FairQueue queue;
  std::deque<FakeWork> works;
  FakeWork newcomer({2, 0});
  for (int i = 0; i < 3; ++i) {
    queue.Push(&works.emplace_back(FlowKey{1, 0}), kMs);
  }
  queue.Push(&works.emplace_back(FlowKey{1, 1}), 2 * kMs);
  // Removes the newest work of the longest line of the caller with the most
  // work.
  EXPECT_EQ(queue.PopFromLongest(newcomer, kMs), &works[2]);
  // A newcomer that would have as much must itself give way.
  EXPECT_THAT(queue.PopFromLongest(newcomer, 4 * kMs), IsNull());
  EXPECT_EQ(queue.count(), 3U);
}

TEST(FairQueueTest, AnyWorkCanBeTakenOut) {
  FairQueue queue;
  FakeWork works[3];
  for (FakeWork& work : works) queue.Push(&work, kMs);
  EXPECT_TRUE(queue.Remove(&works[1]));
  EXPECT_FALSE(queue.Remove(&works[1]));
  EXPECT_TRUE(queue.Remove(&works[2]));
  EXPECT_EQ(queue.Pop(), &works[0]);
  EXPECT_FALSE(queue.Remove(&works[0]));
  EXPECT_EQ(queue.count(), 0U);
  EXPECT_EQ(queue.caller_count(), 0);
}

TEST(FairQueueTest, AGroupIsTakenFromAllLines) {
  FairQueue queue;
  FakeWork a({1, 0}, "g");
  FakeWork b({1, 0}, "other");
  FakeWork c({1, 0}, "g");
  FakeWork d({2, 5}, "g");
  for (FakeWork* work : {&a, &b, &c, &d}) queue.Push(work, kMs);
  Works taken;
  queue.PopGroup("g", 2, taken);
  // First one of each caller, then the others.
  EXPECT_THAT(taken, ElementsAre(&a, &d));
  queue.PopGroup("g", 2, taken);
  EXPECT_THAT(taken, ElementsAre(&a, &d, &c));
  EXPECT_EQ(queue.Pop(), &b);
}

TEST(FairQueueTest, WhatWasBegunDoesNotGiveWay) {
  FairQueue queue;
  FakeWork waits({1, 0});
  FakeWork begun({1, 0});
  begun.set_begun();
  FakeWork newcomer({2, 0});
  queue.Push(&waits, kMs);
  queue.Push(&begun, kMs);
  EXPECT_EQ(queue.PopFromLongest(newcomer, 1), &waits);
  EXPECT_THAT(queue.PopFromLongest(newcomer, 1), IsNull());
}

TEST(FairQueueTest, ACatalogMayBeBehindAnotherOfItsCaller) {
  FairQueue queue;
  FakeWork a({1, 0});
  FakeWork b({1, 1});
  queue.Push(&a, kMs);
  ASSERT_EQ(queue.Pop(), &a);
  queue.Push(&b, kMs);
  queue.Charge(FairQueue::FlowOf({1, 0}), 100 * kMs);
  EXPECT_TRUE(queue.IsBehind(FairQueue::FlowOf({1, 0})));
  EXPECT_FALSE(queue.IsBehind(FairQueue::FlowOf({1, 1})));
}

}  // namespace
}  // namespace attendant
