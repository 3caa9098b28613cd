// What waits, what is refused and whose turn it is: with a time of the tests'
// own, so that an hour of overload takes no time and comes out the same.
#include "service/queue/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "service/queue/fair_queue.h"
#include "service/queue/retry_delay.h"
#include "service/queue/service_time.h"
#include "service/queue/wait_limit.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsNull;
using ::testing::Le;
using ::testing::NotNull;

constexpr std::int64_t kMs = 1'000'000;  // in nanoseconds

SteadyTime At(double ms) {
  return SteadyTime() + absl::ToChronoNanoseconds(absl::Milliseconds(ms));
}

class FakeWork final : public Work {
 public:
  explicit FakeWork(FlowKey flow = {}, std::string group = "")
      : Work(own_interrupt_), group_(std::move(group)) {
    set_flow(flow);
  }
  void Run() override { ADD_FAILURE() << "no worker is here"; }
  void Refuse(const absl::Status& status) override { refusal_ = status; }
  absl::string_view group() const override { return group_; }

  // As one that may take long.
  void set_may_pause() { own_interrupt_.yielder = this; }
  void set_deadline(SteadyTime deadline) { own_interrupt_.deadline = deadline; }
  void set_cancelled(const std::atomic<bool>* flag) {
    own_interrupt_.cancelled = flag;
  }
  using Work::set_begun;
  const absl::Status& refusal() const { return refusal_; }

 private:
  Interrupt own_interrupt_;
  const std::string group_;
  absl::Status refusal_;
};

// --- the order ---

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

// By the caller of each turn, as long as works of all callers wait.
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
  EXPECT_EQ(std::count(callers.begin(), callers.end(), 1), 10);
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
  // Of a caller, and of a catalog of the same one.
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
    EXPECT_EQ(std::count(turns.begin(), turns.end(), 2), 10);
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
  EXPECT_EQ(std::count(callers.begin(), callers.end(), 1), 10);
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
  EXPECT_EQ(std::count(turns.begin(), turns.end(), 0), 10);
  EXPECT_EQ(std::count(turns.begin(), turns.end(), 1), 10);
  EXPECT_EQ(std::count(turns.begin(), turns.end(), 2), 20);
}

TEST(FairQueueTest, TheLongestLineGivesWay) {
  FairQueue queue;
  std::deque<FakeWork> works;
  FakeWork newcomer({2, 0});
  for (int i = 0; i < 3; ++i) {
    queue.Push(&works.emplace_back(FlowKey{1, 0}), kMs);
  }
  queue.Push(&works.emplace_back(FlowKey{1, 1}), 2 * kMs);
  // The newest of the longest line of the caller with most to be done.
  EXPECT_EQ(queue.PopFromLongest(newcomer, kMs), &works[2]);
  // One who would have as much is the one to give way.
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
  // One of each caller, and then what is left.
  EXPECT_THAT(taken, ElementsAre(&a, &d));
  queue.PopGroup("g", 2, taken);
  EXPECT_THAT(taken, ElementsAre(&a, &d, &c));
  EXPECT_EQ(queue.Pop(), &b);
}

// --- how many may wait ---

constexpr absl::Duration kTarget = absl::Milliseconds(10);

// Of works of which 30 are begun in the time to wait.
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
  // This one waited behind the hundred.
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

// --- how long works take ---

TEST(ServiceTimeTest, KnowsTheMeanOfAWorkAndTheTurnOfAQuickOne) {
  ServiceTime time;
  EXPECT_EQ(time.mean_ns(), 0);
  EXPECT_EQ(time.quick_ns(), 0);
  time.Add(8 * kMs, 4, false);
  EXPECT_EQ(time.mean_ns(), 2 * kMs);
  EXPECT_EQ(time.quick_ns(), 8 * kMs);
  // Every second work is slow.
  for (int i = 0; i < 200; ++i) {
    time.Add(100 * kMs, 1, false);
    time.Add(1 * kMs, 1, false);
  }
  EXPECT_GT(time.mean_ns(), 30 * kMs);
  EXPECT_LT(time.quick_ns(), 8 * kMs);
}

TEST(ServiceTimeTest, WhatWasCutShortWouldHaveTakenLonger) {
  ServiceTime time;
  for (int i = 0; i < 200; ++i) time.Add(20 * kMs, 1, true);
  EXPECT_GT(time.quick_ns(), 30 * kMs);
  for (int i = 0; i < 100; ++i) time.Doubt();
  EXPECT_LT(time.quick_ns(), 20 * kMs);
}

// --- who is refused ---

// One worker whose turns take 10 ms.
class WorkQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Fill(1);
    for (int i = 0; i < 20; ++i) RunOne(10);
  }

  // Works that wait, of one caller, that the queue was ready to take.
  void Fill(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_THAT(queue_.Add(&works_.emplace_back(), now_).work, IsNull());
    }
  }

  // The next turn, which takes so long, and a work in place of it.
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
  // A turn that is under way, four turns, and its own.
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
  // A turn that is under way, its own, and one of the others before each.
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

// Else a time learned once would refuse whoever has less for ever.
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
  WorkQueue queue({.thread_count = 4, .most_of_catalog = 2});
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

TEST(WorkQueueCatalogTest, ThoseOfNoneAreNotCounted) {
  WorkQueue queue({.thread_count = 4, .most_of_catalog = 1});
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
      {.thread_count = 4, .refuses_late = true, .most_of_catalog = 2});
  // Of one catalog, 2 s each.
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
  // Of the same caller and of another.
  for (const std::uint64_t caller : {0, 1}) {
    FakeWork other({caller, 8});
    other.set_deadline(At(2100));
    queue.Add(&other, At(2000)).Tell();
    EXPECT_OK(other.refusal());
    EXPECT_EQ(queue.Begin(At(2000), &turns.emplace_back(), &none), &other);
  }
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
  // More than kLongestBurst's worth of work, but so many may always wait.
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
  // There is room for one more as before it.
  Fill(1);
  // It is not the one to give way for it.
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
  // Unless nobody wants it any more.
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

// --- pauses ---

// One worker, a caller with two works that take a second each, and another.
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
  // The heavy work's time is up: true if it lets others have theirs.
  bool Pauses() {
    EXPECT_GE(now_, heavy_[0].yield_time());
    if (!queue_.ShouldPause(heavy_[0], now_)) return false;
    queue_.Pause(&heavy_[0], now_, &resumed_);
    return true;
  }
  // The next work, which takes so long; null if the heavy one's turn goes on.
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
    // Not the caller's other work, nor this one.
    ASSERT_EQ(RunNext(1), &light_);
    // And then this one before the other.
    ASSERT_THAT(RunNext(0), IsNull());
    ASSERT_EQ(queue_.counts().busy_worker_count, 1);
  }
  queue_.End(heavy_turn_, now_);
  // It is a turn without its pauses.
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
  // A little more than the first one had.
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
  // Two others wait, and no more may: it is not the one that gives way.
  FakeWork more({3, 0});
  queue_.Add(&more, now_).Tell();
  EXPECT_TRUE(heavy_[0].refusal().ok());
  EXPECT_EQ(ReasonOf(heavy_[1].refusal()), "QUEUE_FULL");
  EXPECT_EQ(RunNext(1), &light_);
  EXPECT_EQ(RunNext(1), &more);
  // It finds out itself that nobody wants it any more.
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

// The second that the turn under way may still take is not waited for.
TEST_F(PauseTest, ADeadlineIsMetThoughLongWorksAreUnderWay) {
  Pass(1000);
  queue_.End(heavy_turn_, now_);
  ASSERT_EQ(queue_.Begin(now_, &heavy_turn_, &refusal_), &heavy_[1]);
  light_.set_deadline(now_ + std::chrono::milliseconds(50));
  EXPECT_THAT(queue_.Add(&light_, now_).work, IsNull());
}

// --- overload ---

// Workers, and callers who take no notice of each other, in a time of its own.
class Simulation {
 public:
  struct Options {
    int thread_count = 2;
    // Of a turn of n works: turn_ms + n * work_ms, each work's by chance.
    double turn_ms = 0.5;
    double work_ms = 1.5;
    bool shares_turns = true;
    // At the start of each second all workers stand still for so long.
    double stall_ms = 0;
    absl::Duration deadline = absl::InfiniteDuration();
  };
  struct Outcome {
    std::int64_t offered_count = 0;
    std::int64_t refused_count = 0;
    std::vector<double> served_ms;  // from the arrival, ascending
    std::size_t most_waiting = 0;

    double goodput(double seconds) const {
      return static_cast<double>(served_ms.size()) / seconds;
    }
    double p99() const { return served_ms[served_ms.size() * 99 / 100]; }
  };

  explicit Simulation(const Options& options)
      : options_(options),
        queue_({.thread_count = options.thread_count,
                .refuses_late = true,
                .limits_wait = true}),
        workers_(static_cast<std::size_t>(options.thread_count)) {}

  // `rate` works a second at random for so long, by four callers.
  Outcome Run(double rate, double seconds) {
    return Run({rate / 4, rate / 4, rate / 4, rate / 4}, seconds);
  }

  // The same by callers with a rate each.
  Outcome Run(const std::vector<double>& rates, double seconds) {
    Outcome outcome;
    served_by_caller_.assign(rates.size(), 0);
    const double end_ms = now_ms_ + 1000 * seconds;
    const double rate = std::accumulate(rates.begin(), rates.end(), 0.);
    std::discrete_distribution<std::uint64_t> caller(rates.begin(),
                                                     rates.end());
    double next_ms = now_ms_;
    while (true) {
      next_ms += 1000 * std::exponential_distribution<double>(rate)(random_);
      if (next_ms >= end_ms) break;
      RunUntil(next_ms, outcome);
      Arrive({caller(random_), 0}, outcome);
    }
    RunUntil(end_ms, outcome);
    std::sort(outcome.served_ms.begin(), outcome.served_ms.end());
    return outcome;
  }

  // Of the last Run.
  std::int64_t served_count(std::size_t caller) const {
    return served_by_caller_[caller];
  }

 private:
  struct Arrival {
    explicit Arrival(const FlowKey& flow, bool shares)
        : work(flow, shares ? "g" : "") {}
    FakeWork work;
    std::size_t caller = 0;
    double ms = 0;
  };
  struct Worker {
    Turn turn;
    Works works;
    double end_ms = 0;
    bool busy = false;
  };

  void Arrive(const FlowKey& flow, Outcome& outcome) {
    auto arrival = std::make_unique<Arrival>(flow, options_.shares_turns);
    arrival->ms = now_ms_;
    arrival->caller = flow.caller;
    if (options_.deadline != absl::InfiniteDuration()) {
      arrival->work.set_deadline(At(now_ms_) +
                                 absl::ToChronoNanoseconds(options_.deadline));
    }
    FakeWork* work = &arrival->work;
    arrivals_[work] = std::move(arrival);
    ++outcome.offered_count;
    const WorkQueue::Refusal refusal = queue_.Add(work, At(now_ms_));
    if (refusal.work != nullptr) {
      arrivals_.erase(refusal.work);
      ++outcome.refused_count;
    }
    outcome.most_waiting =
        std::max(outcome.most_waiting, queue_.waiting_count());
    BeginTurns();
  }

  void BeginTurns() {
    for (Worker& worker : workers_) {
      while (!worker.busy && queue_.waiting_count() > 0) {
        WorkQueue::Refusal refusal;
        Work* work = queue_.Begin(At(now_ms_), &worker.turn, &refusal);
        if (work == nullptr) {
          arrivals_.erase(refusal.work);
          continue;
        }
        worker.busy = true;
        worker.works = {work};
        if (options_.shares_turns) {
          queue_.TakeAlong(*work, 31, At(now_ms_), worker.works);
        }
        worker.end_ms = now_ms_ + options_.turn_ms;
        for (std::size_t i = 0; i < worker.works.size(); ++i) {
          worker.end_ms += std::exponential_distribution<double>(
              1 / options_.work_ms)(random_);
        }
        const double stalled_ms = std::fmod(now_ms_, 1000);
        if (stalled_ms < options_.stall_ms) {
          worker.end_ms += options_.stall_ms - stalled_ms;
        }
      }
    }
  }

  void RunUntil(double ms, Outcome& outcome) {
    while (true) {
      Worker* next = nullptr;
      for (Worker& worker : workers_) {
        if (!worker.busy || worker.end_ms > ms) continue;
        if (next == nullptr || worker.end_ms < next->end_ms) next = &worker;
      }
      if (next == nullptr) break;
      now_ms_ = next->end_ms;
      for (Work* work : next->works) {
        const double took_ms = now_ms_ - arrivals_[work]->ms;
        // Later ones were for nothing.
        if (absl::Milliseconds(took_ms) <= options_.deadline) {
          outcome.served_ms.push_back(took_ms);
          ++served_by_caller_[arrivals_[work]->caller];
        }
        arrivals_.erase(work);
      }
      next->busy = false;
      queue_.End(next->turn, At(now_ms_));
      BeginTurns();
    }
    now_ms_ = ms;
  }

  const Options options_;
  WorkQueue queue_;
  std::vector<Worker> workers_;
  std::map<Work*, std::unique_ptr<Arrival>> arrivals_;
  std::vector<std::int64_t> served_by_caller_;
  std::mt19937_64 random_{20261122};
  double now_ms_ = 0;
};

constexpr double kSeconds = 20;

// Works a second that can be served: what is, of twice as many as could be.
double CapacityOf(const Simulation::Options& options) {
  return Simulation(options).Run(4000, kSeconds).goodput(kSeconds);
}

void ExpectKeepsItsRate(const Simulation::Options& options) {
  const double capacity = CapacityOf(options);
  Simulation simulation(options);
  const double calm_p99 = simulation.Run(0.7 * capacity, kSeconds).p99();
  for (const double times : {1., 2., 3., 5., 10.}) {
    SCOPED_TRACE(times);
    const Simulation::Outcome burst =
        simulation.Run(times * capacity, kSeconds);
    EXPECT_GE(burst.goodput(kSeconds), (times < 4 ? 0.9 : 0.8) * capacity);
    // At its very capacity queues come and go; each may stand for a while.
    const double standing_ms =
        times > 1 ? 0 : absl::ToDoubleMilliseconds(WaitLimit::kStanding);
    EXPECT_LE(burst.p99(), 3 * calm_p99 + standing_ms);
    // Two seconds later all is as before.
    simulation.Run(0.7 * capacity, 2);
    const Simulation::Outcome after = simulation.Run(0.7 * capacity, kSeconds);
    EXPECT_GE(static_cast<double>(after.served_ms.size()),
              0.99 * static_cast<double>(after.offered_count));
    EXPECT_LE(after.p99(), 1.2 * calm_p99);
  }
}

TEST(OverloadTest, KeepsItsRateWhereWorksShareTurns) {
  ExpectKeepsItsRate({.turn_ms = 3, .work_ms = 0.5});
}

TEST(OverloadTest, KeepsItsRateWhereEachWorkHasItsOwn) {
  ExpectKeepsItsRate({.turn_ms = 0, .work_ms = 2, .shares_turns = false});
}

TEST(OverloadTest, KeepsItsRateWhereWorksTakeLong) {
  ExpectKeepsItsRate({.turn_ms = 0, .work_ms = 25, .shares_turns = false});
}

TEST(OverloadTest, AMachineThatStandsStillForAMomentRefusesNobody) {
  Simulation::Options options;
  options.turn_ms = 0.2;
  options.work_ms = 0.1;
  const double rate = 0.4 * CapacityOf(options);
  options.stall_ms = 40;
  const Simulation::Outcome outcome = Simulation(options).Run(rate, kSeconds);
  EXPECT_GE(outcome.most_waiting, 0.03 * rate);
  EXPECT_EQ(outcome.refused_count, 0);
}

// Callers who give up have nothing of a reply that comes later.
TEST(OverloadTest, WhatIsServedMeetsItsDeadline) {
  const Simulation::Options patient = {.turn_ms = 3, .work_ms = 0.5};
  const double capacity = CapacityOf(patient);
  const auto goodput = [&](absl::Duration deadline) {
    Simulation::Options hasty = patient;
    hasty.deadline = deadline;
    return Simulation(hasty).Run(3 * capacity, kSeconds).goodput(kSeconds);
  };
  // Of three full turns of 19 ms, and of two.
  EXPECT_GE(goodput(absl::Milliseconds(60)), 0.8 * capacity);
  EXPECT_GE(goodput(absl::Milliseconds(40)), 0.6 * capacity);
}

TEST(OverloadTest, ACallerOfTooManyWorksIsTheOneRefused) {
  Simulation::Options options;
  options.turn_ms = 0;
  options.work_ms = 2;
  options.shares_turns = false;
  const double capacity = CapacityOf(options);
  Simulation simulation(options);
  const double share = capacity / 4;
  const Simulation::Outcome outcome =
      simulation.Run({share, 5 * capacity, share}, kSeconds);
  EXPECT_GE(outcome.goodput(kSeconds), 0.95 * capacity);
  for (const std::size_t polite : {0, 2}) {
    EXPECT_GE(static_cast<double>(simulation.served_count(polite)),
              0.97 * share * kSeconds);
  }
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

TEST(WaitLimitTest, NeverGrowsBeyondTheMost) {
  WaitLimit limit(10, 2);
  for (int i = 0; i < 100; ++i) {
    limit.Refused();
    Took(limit, i, i + 1, 5);
  }
  EXPECT_EQ(limit.limit(), 10U);
}

TEST_F(WorkQueueTest, WhatWasBegunGoesOnWhereTheQueueIsFull) {
  Fill(19);  // and one of SetUp
  FakeWork begun;
  begun.set_begun();
  EXPECT_THAT(queue_.Add(&begun, now_).work, IsNull());
}

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
