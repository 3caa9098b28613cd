// Long works that yield their turn to others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "service/queue/work_queue.h"
#include "tests/service/queue/fake_work.h"

namespace attendant {
namespace {

using ::testing::IsNull;

// One worker, a caller with two works of a second each, and another caller.
class PauseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (FakeWork& work : heavy_) {
      work.set_may_pause();
      ASSERT_THAT(queue_.Add(&work, now_).work, IsNull());
    }
    ASSERT_EQ(queue_.Begin(now_, &heavy_turn_, &refusal_), &heavy_[0]);
  }

  void Pass(double ms) {
    now_ += absl::ToChronoNanoseconds(absl::Milliseconds(ms));
  }
  // The heavy work's time slice is over; returns whether it yields.
  bool Pauses() {
    EXPECT_GE(now_, heavy_[0].yield_time());
    if (!queue_.ShouldPause(heavy_[0], now_)) return false;
    queue_.Pause(&heavy_[0], now_, &resumed_);
    return true;
  }
  // Runs the next work, which takes `ms`; null if the heavy work continues.
  Work* RunNext(double ms) {
    Turn turn;
    Work* work = queue_.Begin(now_, &turn, &refusal_);
    if (work == nullptr) return nullptr;
    Pass(ms);
    queue_.End(turn, now_);
    return work;
  }

  WorkQueue queue_{
      {.thread_count = 1, .max_waiting_count = 2, .refuses_late = true}};
  FakeWork heavy_[2] = {FakeWork({1, 0}), FakeWork({1, 0})};
  FakeWork light_{{2, 0}};
  Turn heavy_turn_;
  WorkQueue::Refusal refusal_;
  CondVar resumed_;
  SteadyTime now_ = At(0);
};

TEST_F(PauseTest, WhoHadLessHasATurnBeforeALongWorkEnds) {
  for (int i = 0; i < 100; ++i) {
    Pass(5.1);
    ASSERT_FALSE(Pauses());  // nobody else waits
    ASSERT_THAT(queue_.Add(&light_, now_).work, IsNull());
    Pass(5.1);
    ASSERT_TRUE(Pauses());
    // The light work is next, rather than the caller's other work or this one.
    ASSERT_EQ(RunNext(1), &light_);
    // Then this one continues before the caller's other work.
    ASSERT_THAT(RunNext(0), IsNull());
    ASSERT_EQ(queue_.counts().busy_worker_count, 1);
  }
  queue_.End(heavy_turn_, now_);
  // The turn counts without its pauses.
  const WorkCounts counts = queue_.counts();
  EXPECT_EQ(counts.turn_count, 101);
  EXPECT_EQ(counts.busy_ns, 1120 * kMs);
  EXPECT_EQ(RunNext(1), &heavy_[1]);
}

TEST_F(PauseTest, BothOfTwoCallersWithLongWorksGoOn) {
  FakeWork other({2, 0});
  other.set_may_pause();
  ASSERT_THAT(queue_.Add(&other, now_).work, IsNull());
  Pass(5.1);
  ASSERT_TRUE(Pauses());
  Turn other_turn;
  ASSERT_EQ(queue_.Begin(now_, &other_turn, &refusal_), &other);
  // A little longer than the first one ran.
  Pass(5.2);
  ASSERT_TRUE(queue_.ShouldPause(other, now_));
  CondVar other_resumed;
  queue_.Pause(&other, now_, &other_resumed);
  ASSERT_THAT(RunNext(0), IsNull());
  Pass(5.2);
  ASSERT_TRUE(Pauses());
  ASSERT_THAT(RunNext(0), IsNull());
  EXPECT_EQ(queue_.counts().busy_worker_count, 1);
  EXPECT_EQ(queue_.counts().waiting_count, 2U);
}

TEST_F(PauseTest, WhatIsPausedKeepsItsPlace) {
  std::atomic<bool> cancelled = false;
  heavy_[0].set_cancelled(&cancelled);
  ASSERT_THAT(queue_.Add(&light_, now_).work, IsNull());
  Pass(6);
  ASSERT_TRUE(Pauses());
  cancelled = true;
  EXPECT_FALSE(queue_.Remove(&heavy_[0]));
  EXPECT_FALSE(queue_.RemoveUnlessBegun(&heavy_[0]));
  // Two others wait and no more may: the paused work is not the one to give
  // way.
  FakeWork more({3, 0});
  queue_.Add(&more, now_).Tell();
  EXPECT_TRUE(heavy_[0].refusal().ok());
  EXPECT_EQ(ReasonOf(heavy_[1].refusal()), "QUEUE_FULL");
  EXPECT_EQ(RunNext(1), &light_);
  EXPECT_EQ(RunNext(1), &more);
  // It notices by itself that nobody needs it any more.
  EXPECT_THAT(RunNext(0), IsNull());
  EXPECT_THAT(refusal_.work, IsNull());
}

TEST_F(PauseTest, AGroupTakesNothingAlongThatIsPaused) {
  FakeWork one({1, 0}, "group");
  FakeWork two({2, 0}, "group");
  one.set_may_pause();
  WorkQueue queue({.thread_count = 1, .max_waiting_count = 9});
  queue.Add(&one, now_);
  Turn turn;
  ASSERT_EQ(queue.Begin(now_, &turn, &refusal_), &one);
  queue.Add(&two, now_);
  Pass(6);
  ASSERT_TRUE(queue.ShouldPause(one, now_));
  queue.Pause(&one, now_, &resumed_);
  Turn next;
  ASSERT_EQ(queue.Begin(now_, &next, &refusal_), &two);
  Works taken;
  queue.TakeAlong(two, 8, now_, taken);
  EXPECT_TRUE(taken.empty());
}

// Does not wait for the second that the running turn may still take.
TEST_F(PauseTest, ADeadlineIsMetThoughLongWorksAreUnderWay) {
  Pass(1000);
  queue_.End(heavy_turn_, now_);
  ASSERT_EQ(queue_.Begin(now_, &heavy_turn_, &refusal_), &heavy_[1]);
  light_.set_deadline(now_ + std::chrono::milliseconds(50));
  EXPECT_THAT(queue_.Add(&light_, now_).work, IsNull());
}

}  // namespace
}  // namespace attendant
