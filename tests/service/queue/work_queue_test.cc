// Which work waits, and which is refused.
#include "service/queue/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <set>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "service/queue/fair_queue.h"
#include "service/queue/retry_delay.h"
#include "tests/core/catalog/failing_allocation.h"
#include "tests/service/queue/fake_work.h"
#include "tests/support/sanitized.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsNull;
using ::testing::Le;
using ::testing::NotNull;

// One worker whose turns take 10 ms.
class WorkQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Fill(1);
    for (int i = 0; i < 20; ++i) RunOne(10);
  }

  // Adds `count` works of one caller, all of which the queue must accept.
  void Fill(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_THAT(queue_.Add(&works_.emplace_back(), now_).work, IsNull());
    }
  }

  // Runs the next turn, which takes `ms`, and adds a work in its place.
  void RunOne(double ms) {
    Begin();
    Fill(1);
    End(ms);
  }
  Work* Begin() {
    WorkQueue::Refusal refusal;
    Work* work = queue_.Begin(now_, &turn_, &refusal);
    refusal.Tell();
    return work;
  }
  void End(double ms) {
    now_ += absl::ToChronoNanoseconds(absl::Milliseconds(ms));
    queue_.End(turn_, now_);
  }

  WorkQueue queue_{
      {.thread_count = 1, .max_waiting_count = 20, .refuses_late = true}};
  std::deque<FakeWork> works_;
  Turn turn_;
  SteadyTime now_ = At(0);
};

TEST_F(WorkQueueTest, WhatCannotMeetItsDeadlineIsRefusedAtOnce) {
  ASSERT_THAT(Begin(), NotNull());
  Fill(4);
  // The running turn, four more turns, and its own.
  FakeWork hopeless;
  hopeless.set_deadline(now_ + std::chrono::milliseconds(40));
  queue_.Add(&hopeless, now_).Tell();
  EXPECT_THAT(hopeless.refusal(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the deadline is in 40 ms")));
  EXPECT_EQ(ReasonOf(hopeless.refusal()), "WOULD_BE_LATE");
  EXPECT_THAT(RetryDelayOf(hopeless.refusal()).value(),
              ::testing::AllOf(Ge(kRetryDelay / 2), Le(kRetryDelay * 3 / 2)));

  FakeWork in_time;
  in_time.set_deadline(now_ + std::chrono::milliseconds(70));
  EXPECT_THAT(queue_.Add(&in_time, now_).work, IsNull());
  EXPECT_EQ(queue_.counts().refused_late_count, 1);
  EXPECT_EQ(queue_.counts().waiting_count, 5U);
}

TEST_F(WorkQueueTest, SomebodyElsesLineIsNotWaitedFor) {
  ASSERT_THAT(Begin(), NotNull());
  Fill(15);
  FakeWork other({1, 1});
  // The running turn, its own, and one of the other caller's before each.
  other.set_deadline(now_ + std::chrono::milliseconds(50));
  EXPECT_THAT(queue_.Add(&other, now_).work, IsNull());
}

TEST_F(WorkQueueTest, AFreeWorkerTriesEverything) {
  Begin();
  End(10);
  FakeWork brief;
  brief.set_deadline(now_ + std::chrono::milliseconds(1));
  EXPECT_THAT(queue_.Add(&brief, now_).work, IsNull());
  EXPECT_EQ(Begin(), &brief);
}

// Otherwise a time learned once would refuse callers with less for ever.
TEST_F(WorkQueueTest, ARefusalLeavesDoubt) {
  ASSERT_THAT(Begin(), NotNull());
  FakeWork brief;
  brief.set_deadline(now_ + std::chrono::milliseconds(14));
  int refused_count = 0;
  while (queue_.Add(&brief, now_).work != nullptr) {
    ASSERT_LT(++refused_count, 100);
  }
  EXPECT_GT(refused_count, 1);
}

TEST_F(WorkQueueTest, WhatHasEndedTakesNeitherAPlaceNorATurn) {
  FakeWork expired;
  expired.set_deadline(now_);
  queue_.Add(&expired, now_).Tell();
  EXPECT_THAT(expired.refusal(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("")));
  Begin();
  End(10);
  std::atomic<bool> flag = false;
  FakeWork cancelled;
  cancelled.set_cancelled(&flag);
  EXPECT_THAT(queue_.Add(&cancelled, now_).work, IsNull());
  flag = true;
  const std::int64_t turn_count = queue_.counts().turn_count;
  EXPECT_THAT(Begin(), IsNull());
  EXPECT_THAT(cancelled.refusal(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
  EXPECT_EQ(queue_.counts().ended_waiting_count, 2);
  EXPECT_EQ(queue_.counts().turn_count, turn_count);
  EXPECT_EQ(queue_.counts().busy_worker_count, 0);
}

TEST_F(WorkQueueTest, TheNewestOfWhoeverHasMostWaitingIsRefused) {
  Fill(19);  // and one more of SetUp
  FakeWork own;
  queue_.Add(&own, now_).Tell();
  EXPECT_EQ(ReasonOf(own.refusal()), "QUEUE_FULL");
  EXPECT_THAT(own.refusal().message(), HasSubstr("got 20, want fewer than 20"));
  FakeWork polite({1, 0});
  queue_.Add(&polite, now_).Tell();
  EXPECT_TRUE(polite.refusal().ok());
  EXPECT_EQ(ReasonOf(works_.back().refusal()), "QUEUE_FULL");
  EXPECT_EQ(queue_.counts().waiting_count, 20U);
  EXPECT_EQ(queue_.counts().refused_full_count, 2);
}

TEST(WorkQueueCatalogTest, ThoseOfOneLeaveTurnsToOthers) {
  WorkQueue queue({.thread_count = 4, .max_turns_of_catalog = 2});
  FakeWork works[] = {FakeWork({0, 7}), FakeWork({1, 7}), FakeWork({2, 7}),
                      FakeWork({3, 8})};
  for (FakeWork& work : works) {
    ASSERT_THAT(queue.Add(&work, At(0)).work, IsNull());
  }
  Turn turns[4];
  WorkQueue::Refusal none;
  const auto begin = [&](int turn) {
    return queue.Begin(At(0), &turns[turn], &none);
  };
  EXPECT_EQ(begin(0), &works[0]);
  EXPECT_EQ(begin(1), &works[1]);
  EXPECT_EQ(begin(2), &works[3]);
  EXPECT_FALSE(queue.can_begin());
  EXPECT_THAT(begin(3), IsNull());
  queue.End(turns[2], At(1));
  EXPECT_FALSE(queue.can_begin());
  queue.End(turns[1], At(1));
  EXPECT_TRUE(queue.can_begin());
  EXPECT_EQ(begin(1), &works[2]);
  EXPECT_FALSE(queue.can_begin());
  queue.End(turns[0], At(1));
  queue.End(turns[1], At(1));
  EXPECT_TRUE(queue.is_idle());
}

TEST(WorkQueueCatalogTest, ThoseOfOneCallerLeaveTurnsToOthers) {
  WorkQueue queue(
      {.thread_count = 4, .max_turns_of_catalog = 2, .max_turns_of_caller = 3});
  // One caller, with three catalogs and with none; and another caller.
  FakeWork works[] = {FakeWork({1, 5}), FakeWork({1, 6}), FakeWork({1, 0}),
                      FakeWork({1, 7}), FakeWork({2, 7})};
  for (FakeWork& work : works) {
    ASSERT_THAT(queue.Add(&work, At(0)).work, IsNull());
  }
  Turn turns[4];
  WorkQueue::Refusal none;
  std::set<Work*> begun;
  for (Turn& turn : turns) {
    Work* work = queue.Begin(At(0), &turn, &none);
    ASSERT_THAT(work, NotNull());
    begun.insert(work);
  }
  EXPECT_TRUE(begun.contains(&works[4]));
  EXPECT_FALSE(queue.can_begin());
  for (Turn& turn : turns) queue.End(turn, At(1));
  Turn last;
  EXPECT_THAT(queue.Begin(At(1), &last, &none), NotNull());
  queue.End(last, At(2));
  EXPECT_TRUE(queue.is_idle());
}

TEST(WorkQueueCatalogTest, ThoseOfNoneAreNotCounted) {
  WorkQueue queue({.thread_count = 4, .max_turns_of_catalog = 1});
  FakeWork works[3];
  Turn turns[3];
  WorkQueue::Refusal none;
  for (int i = 0; i < 3; ++i) {
    queue.Add(&works[i], At(0));
    EXPECT_EQ(queue.Begin(At(0), &turns[i], &none), &works[i]);
  }
}

TEST(WorkQueueCatalogTest, NobodyIsLateForThoseWhoWaitForEachOther) {
  WorkQueue queue(
      {.thread_count = 4, .refuses_late = true, .max_turns_of_catalog = 2});
  // Works of one catalog, 2 s each.
  std::deque<FakeWork> held;
  std::deque<Turn> turns;
  WorkQueue::Refusal none;
  for (int i = 0; i < 8; ++i) {
    queue.Add(&held.emplace_back(FlowKey{0, 7}), At(0));
    Turn turn;
    queue.Begin(At(0), &turn, &none);
    queue.End(turn, At(2000));
  }
  for (int i = 0; i < 20; ++i) {
    ASSERT_THAT(queue.Add(&held.emplace_back(FlowKey{0, 7}), At(2000)).work,
                IsNull());
    if (queue.can_begin()) {
      queue.Begin(At(2000), &turns.emplace_back(), &none);
    }
  }
  ASSERT_EQ(turns.size(), 2U);
  FakeWork late({0, 7});
  late.set_deadline(At(2100));
  queue.Add(&late, At(2000)).Tell();
  EXPECT_EQ(ReasonOf(late.refusal()), "WOULD_BE_LATE");
  // From the same caller and from another.
  for (const std::uint64_t caller : {0, 1}) {
    FakeWork other({caller, 8});
    other.set_deadline(At(2100));
    queue.Add(&other, At(2000)).Tell();
    EXPECT_OK(other.refusal());
    EXPECT_EQ(queue.Begin(At(2000), &turns.emplace_back(), &none), &other);
  }
}

// All of its works are from one sender, with turns of 100 ms, of which two run
// at a time.
class WorkQueueLimitTest : public ::testing::Test {
 protected:
  // Learns the time of a turn, then adds works to `queue`, of which two begin
  // and 20 wait.
  void Fill(WorkQueue& queue) {
    WorkQueue::Refusal none;
    Turn turn;
    queue.Add(&works_.emplace_back(kSender), At(0));
    queue.Begin(At(0), &turn, &none);
    queue.End(turn, At(100));
    for (int i = 0; i < 22; ++i) {
      ASSERT_THAT(queue.Add(&works_.emplace_back(kSender), At(100)).work,
                  IsNull());
      if (queue.can_begin()) {
        queue.Begin(At(100), &turns_.emplace_back(), &none);
      }
    }
    ASSERT_EQ(turns_.size(), 2U);
  }

  // Expects that works are taken for late if they have less than 1.2 s: ten
  // turns before theirs, the rest of one that runs, and their own.
  void ExpectWaitOfTenTurns(WorkQueue& queue) {
    FakeWork early(kSender);
    early.set_deadline(At(100 + 1150));
    const WorkQueue::Refusal refusal = queue.Add(&early, At(100));
    refusal.Tell();
    EXPECT_EQ(ReasonOf(early.refusal()), "WOULD_BE_LATE");
    EXPECT_EQ(refusal.expected, absl::Milliseconds(1200));
    EXPECT_EQ(refusal.retry_delay, absl::Milliseconds(1000));
    works_.emplace_back(kSender).set_deadline(At(100 + 1250));
    EXPECT_THAT(queue.Add(&works_.back(), At(100)).work, IsNull());
  }

  static constexpr FlowKey kSender = {3, 7};
  std::deque<FakeWork> works_;
  std::deque<Turn> turns_;
};

TEST_F(WorkQueueLimitTest, ACatalogIsServedByTheTurnsThatItMayHave) {
  WorkQueue queue(
      {.thread_count = 8, .refuses_late = true, .max_turns_of_catalog = 2});
  Fill(queue);
  ExpectWaitOfTenTurns(queue);
}

TEST_F(WorkQueueLimitTest, ACallerIsServedByTheTurnsThatItMayHave) {
  WorkQueue queue(
      {.thread_count = 8, .refuses_late = true, .max_turns_of_caller = 2});
  Fill(queue);
  ExpectWaitOfTenTurns(queue);
}

TEST_F(WorkQueueLimitTest, OthersOfItsLineDoNotWaitForItsTurns) {
  WorkQueue queue({.thread_count = 8,
                   .refuses_late = true,
                   .max_turns_of_catalog = 2,
                   .max_turns_of_caller = 2});
  Fill(queue);
  // Another caller, and a catalog of its, whose hashes collide.
  const FlowKey other = {kSender.caller + FairQueue::kCallers,
                         kSender.catalog + FairQueue::kCatalogs};
  ASSERT_EQ(FairQueue::FlowOf(other), FairQueue::FlowOf(kSender));
  for (int i = 0; i < 2; ++i) {
    works_.emplace_back(other).set_deadline(At(100 + 600));
    EXPECT_THAT(queue.Add(&works_.back(), At(100)).work, IsNull());
    WorkQueue::Refusal none;
    EXPECT_EQ(queue.Begin(At(100), &turns_.emplace_back(), &none),
              &works_.back());
  }
  // Its turns are used up: a work waits as long as 20 take eight workers.
  works_.emplace_back(other).set_deadline(At(100 + 500));
  EXPECT_THAT(queue.Add(&works_.back(), At(100)).work, IsNull());
}

TEST(WorkQueueMemoryTest, ARefusedWorkIsTold) {
  if (kSanitized) GTEST_SKIP() << "no allocation fails";
  WorkQueue queue({.thread_count = 1, .max_waiting_count = 1});
  FakeWork first;
  ASSERT_THAT(queue.Add(&first, At(0)).work, IsNull());
  int nth = 0;
  while (true) {
    FakeWork second;
    const WorkQueue::Refusal refusal = queue.Add(&second, At(0));
    ASSERT_EQ(refusal.work, &second);
    if (!WithoutMemoryAt(++nth, [&] { refusal.Tell(); })) {
      EXPECT_EQ(ReasonOf(second.refusal()), "QUEUE_FULL");
      break;
    }
    EXPECT_EQ(ReasonOf(second.refusal()), "OUT_OF_MEMORY") << nth;
  }
  EXPECT_GT(nth, 1);
}

TEST(WorkQueueBurstTest, ARefusalSaysHowManyAreTooManyNow) {
  WorkQueue queue({.thread_count = 1, .limits_wait = true});
  std::deque<FakeWork> works;
  SteadyTime now = At(0);
  for (int i = 0; i < 20; ++i) {
    queue.Add(&works.emplace_back(), now);
    Turn turn;
    WorkQueue::Refusal none;
    queue.Begin(now, &turn, &none);
    now += absl::ToChronoNanoseconds(absl::Milliseconds(20));
    queue.End(turn, now);
  }
  // More than kLongestBurst of work, but this many may always wait.
  for (int i = 0; i < 8; ++i) {
    ASSERT_THAT(queue.Add(&works.emplace_back(), now).work, IsNull());
  }
  FakeWork more;
  queue.Add(&more, now).Tell();
  EXPECT_EQ(ReasonOf(more.refusal()), "QUEUE_FULL");
  EXPECT_THAT(more.refusal().message(), HasSubstr("got 8, want fewer than 8"));
}

TEST_F(WorkQueueTest, WhatWasBegunGoesOnWhereTooManyWait) {
  Fill(18);  // and one more of SetUp
  FakeWork begun;
  begun.set_begun();
  EXPECT_THAT(queue_.Add(&begun, now_).work, IsNull());
  // There is still room for one more.
  Fill(1);
  // The begun work does not give way to this one.
  FakeWork polite({1, 0});
  queue_.Add(&polite, now_).Tell();
  EXPECT_TRUE(polite.refusal().ok());
  EXPECT_TRUE(begun.refusal().ok());
  EXPECT_EQ(ReasonOf(works_.back().refusal()), "QUEUE_FULL");
}

TEST_F(WorkQueueTest, WhatWasBegunGoesOnThoughItMayBeLate) {
  ASSERT_THAT(Begin(), NotNull());
  Fill(4);
  FakeWork begun;
  begun.set_begun();
  begun.set_deadline(now_ + std::chrono::milliseconds(1));
  EXPECT_THAT(queue_.Add(&begun, now_).work, IsNull());
  EXPECT_EQ(queue_.counts().refused_late_count, 0);
  // Except if nobody needs the result any more.
  FakeWork expired;
  expired.set_begun();
  expired.set_deadline(now_);
  EXPECT_EQ(queue_.Add(&expired, now_).work, &expired);
}

TEST_F(WorkQueueTest, CountsWhatWasCutShortAndHowLongAfter) {
  auto* work = static_cast<FakeWork*>(Begin());
  work->CutShort(absl::Milliseconds(3));
  work->CutShort(absl::Milliseconds(1));
  End(10);
  const WorkCounts counts = queue_.counts();
  EXPECT_EQ(counts.cut_short_count, 2);
  EXPECT_EQ(counts.overrun_ns, 4 * kMs);
  EXPECT_EQ(counts.longest_overrun_ns, 3 * kMs);
  EXPECT_EQ(counts.run_count, 21);
  EXPECT_EQ(counts.busy_ns, 210 * kMs);
}

TEST_F(WorkQueueTest, WhatWasBegunGoesOnWhereTheQueueIsFull) {
  Fill(19);  // and one of SetUp
  FakeWork begun;
  begun.set_begun();
  EXPECT_THAT(queue_.Add(&begun, now_).work, IsNull());
}

}  // namespace
}  // namespace attendant
