#include "service/queue/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "service/queue/light_queries.h"
#include "tests/core/catalog/failing_allocation.h"
#include "tests/support/sanitized.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FunctionWork final : public Work {
 public:
  explicit FunctionWork(std::function<void()> function, std::string group = "")
      : Work(own_interrupt_),
        function_(std::move(function)),
        group_(std::move(group)) {}
  void Run() override { function_(); }
  void Refuse(const absl::Status& status) override {
    MutexLock lock(&mutex_);
    refusals_.push_back(status);
  }
  absl::string_view group() const override { return group_; }
  using Work::set_begun;
  using Work::set_flow;
  void set_interrupt(const Interrupt& interrupt) { own_interrupt_ = interrupt; }

  // Returns the refusals that it was told, one for each.
  std::vector<absl::Status> refusals() const {
    MutexLock lock(&mutex_);
    return refusals_;
  }

 private:
  Interrupt own_interrupt_;
  std::function<void()> function_;
  std::string group_;
  mutable Mutex mutex_;
  std::vector<absl::Status> refusals_ ABSL_GUARDED_BY(mutex_);
};

// Something that threads can wait for.
class Gate {
 public:
  void Open() {
    MutexLock lock(&mutex_);
    open_ = true;
    opened_.NotifyAll();
  }
  // Fails the test after a minute, rather than hang.
  void Await() {
    const SteadyTime end = SteadyAfter(absl::Minutes(1));
    MutexLock lock(&mutex_);
    while (!open_ && SteadyNow() < end) {
      opened_.WaitWithTimeout(&mutex_, TimeUntil(end));
    }
    EXPECT_TRUE(open_) << "nobody opened the gate";
  }

 private:
  Mutex mutex_;
  CondVar opened_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(WorkerPoolTest, RunsEveryWorkOnce) {
  std::atomic<int> count = 0;
  std::vector<std::unique_ptr<FunctionWork>> works;
  for (int i = 0; i < 1000; ++i) {
    works.push_back(std::make_unique<FunctionWork>([&] { ++count; }));
  }
  {
    WorkerPool pool({.thread_count = 4, .max_waiting_count = 1000});
    for (const auto& work : works) pool.Add(work.get());
  }
  EXPECT_EQ(count, 1000);
  for (const auto& work : works) EXPECT_THAT(work->refusals(), IsEmpty());
}

TEST(WorkerPoolTest, OneThreadRunsInOrder) {
  std::vector<int> order;
  std::vector<std::unique_ptr<FunctionWork>> works;
  for (int i = 0; i < 100; ++i) {
    works.push_back(
        std::make_unique<FunctionWork>([&order, i] { order.push_back(i); }));
  }
  {
    WorkerPool pool({.thread_count = 1, .max_waiting_count = 100});
    for (const auto& work : works) pool.Add(work.get());
  }
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(WorkerPoolTest, RefusesBeyondItsBound) {
  Gate started;
  Gate release;
  FunctionWork blocker([&] {
    started.Open();
    release.Await();
  });
  std::atomic<int> count = 0;
  std::vector<std::unique_ptr<FunctionWork>> works;
  for (int i = 0; i < 4; ++i) {
    works.push_back(std::make_unique<FunctionWork>([&] { ++count; }));
  }
  {
    WorkerPool pool({.thread_count = 1, .max_waiting_count = 3});
    pool.Add(&blocker);
    started.Await();  // the queue is empty again
    for (const auto& work : works) pool.Add(work.get());
    for (int i = 0; i < 3; ++i) EXPECT_THAT(works[i]->refusals(), IsEmpty());
    EXPECT_THAT(works[3]->refusals(),
                ElementsAre(StatusIs(absl::StatusCode::kResourceExhausted, _)));
    EXPECT_EQ(pool.counts().refused_full_count, 1);
    release.Open();
  }
  EXPECT_EQ(count, 3);
}

TEST(WorkerPoolTest, WhatNobodyWantsAnyMoreIsNotRun) {
  Gate started;
  Gate release;
  FunctionWork blocker([&] {
    started.Open();
    release.Await();
  });
  std::atomic<bool> cancelled = false;
  FunctionWork work([] { ADD_FAILURE() << "ran though it was cancelled"; });
  work.set_interrupt({.cancelled = &cancelled});
  FunctionWork late([] { ADD_FAILURE() << "ran after its deadline"; });
  late.set_interrupt({.deadline = SteadyNow()});
  WorkerPool pool({.thread_count = 1, .max_waiting_count = 3});
  pool.Add(&blocker);
  started.Await();
  pool.Add(&work);
  pool.Add(&late);
  EXPECT_THAT(late.refusals(),
              ElementsAre(StatusIs(absl::StatusCode::kDeadlineExceeded, _)));
  cancelled = true;
  release.Open();
  pool.Stop();
  EXPECT_THAT(work.refusals(),
              ElementsAre(StatusIs(absl::StatusCode::kCancelled, _)));
  EXPECT_EQ(pool.counts().ended_waiting_count, 2);
  EXPECT_EQ(pool.counts().run_count, 1);
}

TEST(WorkerPoolTest, WhatIsRemovedIsNeitherRunNorRefused) {
  Gate started;
  Gate release;
  FunctionWork blocker([&] {
    started.Open();
    release.Await();
  });
  FunctionWork work([] { ADD_FAILURE() << "ran though it was removed"; });
  bool begun_ran = false;
  bool later_ran = false;
  FunctionWork begun([&] {
    EXPECT_FALSE(later_ran);  // it kept its place
    begun_ran = true;
  });
  begun.set_begun();
  FunctionWork later([&] { later_ran = true; });
  WorkerPool pool({.thread_count = 1, .max_waiting_count = 3});
  pool.Add(&blocker);
  started.Await();
  EXPECT_FALSE(pool.RemoveUnlessBegun(&blocker));
  pool.Add(&begun);
  pool.Add(&work);
  pool.Add(&later);
  EXPECT_TRUE(pool.RemoveUnlessBegun(&work));
  EXPECT_FALSE(pool.RemoveUnlessBegun(&work));
  EXPECT_FALSE(pool.RemoveUnlessBegun(&begun));
  EXPECT_EQ(pool.counts().waiting_count, 2U);
  release.Open();
  pool.Stop();
  EXPECT_TRUE(begun_ran);
  EXPECT_TRUE(later_ran);
  EXPECT_THAT(work.refusals(), IsEmpty());
  EXPECT_FALSE(pool.RemoveUnlessBegun(&begun));
}

TEST(WorkerPoolTest, WhatIsCancelledIsToldAtOnceAndNotRun) {
  Gate started;
  Gate release;
  FunctionWork blocker([&] {
    started.Open();
    release.Await();
  });
  FunctionWork work([] { ADD_FAILURE() << "ran though it was cancelled"; });
  FunctionWork late([] { ADD_FAILURE() << "ran though its caller was late"; });
  late.set_interrupt({.deadline = SteadyAfter(absl::Hours(1)),
                      .caller_deadline = SteadyNow()});
  WorkerPool pool({.thread_count = 1, .max_waiting_count = 3});
  pool.Add(&blocker);
  started.Await();
  pool.Add(&work);
  pool.Add(&late);
  pool.Cancel(&work);
  pool.Cancel(&late);
  EXPECT_THAT(work.refusals(),
              ElementsAre(StatusIs(absl::StatusCode::kCancelled, _)));
  EXPECT_THAT(late.refusals(),
              ElementsAre(StatusIs(absl::StatusCode::kDeadlineExceeded, _)));
  EXPECT_EQ(pool.counts().waiting_count, 0U);
  // Work that has or had its turn continues.
  pool.Cancel(&work);
  pool.Cancel(&blocker);
  release.Open();
  pool.Stop();
  EXPECT_THAT(blocker.refusals(), IsEmpty());
  EXPECT_EQ(work.refusals().size(), 1U);
}

TEST(WorkerPoolTest, ThreadsWorkSideBySide) {
  // Each of the two waits for the other: a single thread would hang.
  Gate first;
  Gate second;
  FunctionWork a([&] {
    first.Open();
    second.Await();
  });
  FunctionWork b([&] {
    second.Open();
    first.Await();
  });
  WorkerPool pool({.thread_count = 2, .max_waiting_count = 2});
  pool.Add(&a);
  pool.Add(&b);
}

// Returns what a work of `group` takes along from `waiting` while all workers
// are busy.
Works TakenAlong(int thread_count, const std::string& group, std::size_t most,
                 const Works& waiting) {
  std::vector<Gate> started(static_cast<std::size_t>(thread_count));
  Gate all_wait;
  Gate taken_along;
  WorkerPool pool({.thread_count = thread_count, .max_waiting_count = 100});
  Works taken;
  FunctionWork first(
      [&] {
        started[0].Open();
        all_wait.Await();
        pool.TakeAlong(first, most, taken);
        EXPECT_EQ(pool.counts().waiting_count, waiting.size() - taken.size());
        taken_along.Open();
      },
      group);
  std::vector<std::unique_ptr<FunctionWork>> blockers;
  pool.Add(&first);
  for (std::size_t i = 1; i < started.size(); ++i) {
    blockers.push_back(std::make_unique<FunctionWork>([&, i] {
      started[i].Open();
      taken_along.Await();
    }));
    pool.Add(blockers.back().get());
  }
  for (Gate& gate : started) gate.Await();
  for (Work* work : waiting) pool.Add(work);
  EXPECT_EQ(pool.counts().waiting_count, waiting.size());
  all_wait.Open();
  pool.Stop();
  EXPECT_EQ(pool.counts().turn_count,
            thread_count + static_cast<int>(waiting.size() - taken.size()));
  EXPECT_EQ(pool.counts().run_count,
            thread_count + static_cast<int>(waiting.size()));
  return taken;
}

// The end of a turn can make room for one work of its caller and for one of its
// catalog, which were both refused a free worker before.
TEST(WorkerPoolTest, ATurnThatEndsMakesRoomForTwo) {
  Gate go;
  Gate caller_began;
  Gate catalog_began;
  FunctionWork first([&] { go.Await(); });
  FunctionWork of_caller([&] {
    caller_began.Open();
    catalog_began.Await();
  });
  FunctionWork of_catalog([&] {
    catalog_began.Open();
    caller_began.Await();
  });
  first.set_flow({1, 1});
  of_caller.set_flow({1, 2});
  of_catalog.set_flow({2, 1});
  WorkerPool pool(
      {.thread_count = 2, .max_turns_of_catalog = 1, .max_turns_of_caller = 1});
  pool.Add(&first);
  pool.Add(&of_caller);
  pool.Add(&of_catalog);
  go.Open();
  caller_began.Await();
  catalog_began.Await();
  pool.Stop();
}

TEST(WorkerPoolTest, TakesAlongItsGroupInItsOrder) {
  std::vector<int> ran;
  FunctionWork a1([&] { ran.push_back(1); }, "a");
  FunctionWork b([&] { ran.push_back(2); }, "b");
  FunctionWork none([&] { ran.push_back(3); });
  FunctionWork a2([&] { ran.push_back(4); }, "a");
  FunctionWork a3([&] { ran.push_back(5); }, "a");
  EXPECT_THAT(TakenAlong(1, "a", 2, {&a1, &b, &none, &a2, &a3}),
              ElementsAre(&a1, &a2));
  EXPECT_THAT(ran, ElementsAre(2, 3, 5));
}

TEST(WorkerPoolTest, LeavesEachWorkerItsShare) {
  std::atomic<int> ran = 0;
  std::vector<std::unique_ptr<FunctionWork>> works;
  Works five;
  for (int i = 0; i < 5; ++i) {
    works.push_back(std::make_unique<FunctionWork>([&] { ++ran; }, "a"));
    five.push_back(works.back().get());
  }
  EXPECT_EQ(TakenAlong(2, "a", 100, five).size(), 3U);
  EXPECT_EQ(ran, 2);
}

// A work that also answers for those that it takes along.
class SharedWork final : public Work {
 public:
  SharedWork(WorkerPool& pool, int number)
      : Work(interrupt_),
        pool_(pool),
        group_(number % 3 == 0 ? "" : absl::StrCat(number % 3)) {}

  void Run() override {
    Works works = {this};
    if (!group_.empty()) pool_.TakeAlong(*this, 31, works);
    for (Work* work : works) {
      auto* shared = static_cast<SharedWork*>(work);
      EXPECT_EQ(shared->group_, group_);
      ++shared->run_count_;
    }
  }
  void Refuse(const absl::Status& status) override { ADD_FAILURE() << status; }
  absl::string_view group() const override { return group_; }
  int run_count() const { return run_count_; }

 private:
  const Interrupt interrupt_;
  WorkerPool& pool_;
  const std::string group_;
  int run_count_ = 0;  // by whichever worker has it: once, so without a lock
};

TEST(WorkerPoolTest, EachWorkIsRunOnceByItselfOrAnother) {
  constexpr int kWorks = 3000;
  WorkerPool pool({.thread_count = 3, .max_waiting_count = kWorks});
  std::vector<std::unique_ptr<SharedWork>> works;
  for (int i = 0; i < kWorks; ++i) {
    works.push_back(std::make_unique<SharedWork>(pool, i));
  }
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&, c] {
      for (int i = c; i < kWorks; i += 3) {
        pool.Add(works[i].get());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  pool.Stop();
  for (const auto& work : works) ASSERT_EQ(work->run_count(), 1);
}

// A work that repeatedly asks whether it should yield, until it may end.
class LongWork final : public Work {
 public:
  LongWork(WorkerPool& pool, std::uint64_t caller)
      : Work(interrupt_), pool_(pool) {
    interrupt_.yielder = this;
    interrupt_.cancelled = &cancelled_;
    set_flow({caller, 0});
  }
  void Run() override {
    has_started_ = true;
    started_.Open();
    while (interrupt_.Check().ok() && !may_end_) std::this_thread::yield();
    ended_.Open();
  }
  void Refuse(const absl::Status& status) override { ADD_FAILURE() << status; }
  void Yield() override {
    if (!has_no_memory_) return pool_.Yield(this);
    const FailingAllocation failing(1);
    pool_.Yield(this);
    if (failing.befell()) memory_ran_out_.Open();
  }

  // Makes allocations fail while it yields.
  void set_has_no_memory() { has_no_memory_ = true; }
  void AwaitNoMemory() { memory_ran_out_.Await(); }
  bool has_started() const { return has_started_; }
  void AwaitStart() { started_.Await(); }
  void AwaitEnd() { ended_.Await(); }
  void LetEnd() { may_end_ = true; }
  void Cancel() {
    cancelled_ = true;
    pool_.Cancel(this);
  }

 private:
  WorkerPool& pool_;
  Interrupt interrupt_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> may_end_ = false;
  std::atomic<bool> has_started_ = false;
  bool has_no_memory_ = false;
  Gate started_;
  Gate memory_ran_out_;
  Gate ended_;
};

// Without pauses none of them would ever end.
TEST(WorkerPoolTest, LongWorksLetOthersHaveTheirTurns) {
  WorkerPool pool({.thread_count = 2});
  LongWork first(pool, 1);
  LongWork second(pool, 1);
  LongWork third(pool, 1);
  for (LongWork* work : {&first, &second, &third}) pool.Add(work);
  first.AwaitStart();
  second.AwaitStart();
  for (int i = 0; i < 20; ++i) {
    Gate ran;
    FunctionWork light([&] { ran.Open(); });
    pool.Add(&light);
    ran.Await();
  }
  // Another caller's long work, and short ones of a third caller at the same
  // time.
  LongWork other(pool, 2);
  pool.Add(&other);
  other.AwaitStart();
  for (int i = 0; i < 20; ++i) {
    Gate ran;
    FunctionWork light([&] { ran.Open(); });
    pool.Add(&light);
    ran.Await();
  }
  EXPECT_LE(pool.counts().busy_worker_count, 2);
  // A work that is cancelled while paused ends in its turn.
  second.Cancel();
  for (LongWork* work : {&first, &third, &other}) work->LetEnd();
  for (LongWork* work : {&first, &second, &third, &other}) work->AwaitEnd();
  pool.Stop();
  EXPECT_EQ(pool.counts().run_count, 44);
  EXPECT_EQ(pool.counts().busy_worker_count, 0);
}

TEST(WorkerPoolTest, WhatIsPausedEndsWhenThePoolStops) {
  std::vector<std::unique_ptr<LongWork>> works;
  WorkerPool pool({.thread_count = 1});
  for (std::uint64_t caller = 0; caller < 5; ++caller) {
    works.push_back(std::make_unique<LongWork>(pool, caller));
    pool.Add(works.back().get());
  }
  for (const auto& work : works) work->AwaitStart();
  std::thread stop([&] { pool.Stop(); });
  for (const auto& work : works) work->LetEnd();
  stop.join();
  for (const auto& work : works) work->AwaitEnd();
  EXPECT_EQ(pool.counts().run_count, 5);
}

// Works in excess of those that may be paused have their turns one after the
// other.
TEST(WorkerPoolTest, NoMoreThanSomeArePaused) {
  std::vector<std::unique_ptr<LongWork>> works;
  WorkerPool pool({.thread_count = 1, .max_waiting_count = 1000});
  for (int i = 0; i < WorkerPool::kMaxPaused + 10; ++i) {
    const auto caller = static_cast<std::uint64_t>(i);
    works.push_back(std::make_unique<LongWork>(pool, caller));
    pool.Add(works.back().get());
  }
  const auto started_count = [&] {
    return std::ranges::count_if(
        works, [](const auto& work) { return work->has_started(); });
  };
  while (started_count() < WorkerPool::kMaxPaused + 1) {
    std::this_thread::yield();
  }
  for (const auto& work : works) work->LetEnd();
  for (const auto& work : works) work->AwaitEnd();
  pool.Stop();
}

TEST(WorkerPoolTest, WithoutMemoryForAStandInAWorkGoesOn) {
  if (kSanitized) GTEST_SKIP() << "no allocation fails";
  WorkerPool pool({.thread_count = 1});
  LongWork work(pool, 1);
  work.set_has_no_memory();
  pool.Add(&work);
  work.AwaitStart();
  std::atomic<bool> ran = false;
  FunctionWork light([&] { ran = true; });
  light.set_flow({2, 0});
  pool.Add(&light);
  work.AwaitNoMemory();
  EXPECT_FALSE(ran);
  work.LetEnd();
  work.AwaitEnd();
  pool.Stop();
  EXPECT_TRUE(ran);
}

TEST(WorkerPoolTest, TakesNothingAfterStop) {
  FunctionWork work([] { ADD_FAILURE() << "ran after Stop"; });
  WorkerPool pool({.thread_count = 2, .max_waiting_count = 2});
  pool.Stop();
  pool.Add(&work);
  EXPECT_THAT(work.refusals(),
              ElementsAre(StatusIs(absl::StatusCode::kUnavailable, _)));
  pool.Stop();
}

TEST(WorkerPoolTest, ItsThreadsHaveItsNameAndShare) {
  char name[16] = {};
  int nice = -1;
  FunctionWork work([&] {
    pthread_getname_np(pthread_self(), name, sizeof(name));
    nice = getpriority(PRIO_PROCESS, 0);
  });
  const int own_nice = getpriority(PRIO_PROCESS, 0);
  {
    WorkerPool pool({.thread_count = 1}, {.name = "read"});
    EXPECT_EQ(pool.name(), "read");
    pool.Add(&work);
  }
  EXPECT_STREQ(name, "read");
  EXPECT_EQ(nice, own_nice);
  {
    WorkerPool pool({.thread_count = 1},
                    {.name = "write", .share = Share::kLow});
    pool.Add(&work);
  }
  EXPECT_STREQ(name, "write");
  EXPECT_EQ(nice, std::max(own_nice, 10));
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), own_nice);
}

constexpr bool kAlone = false;
constexpr bool kBesideOthers = true;

TEST(WorkerPoolTest, WhileAWorkerIsFreeOthersMayRunInItsStead) {
  WorkerPool pool({.thread_count = 2}, {.most_elsewhere = 1});
  std::thread::id ran_on;
  FunctionWork work([&] { ran_on = std::this_thread::get_id(); });
  EXPECT_TRUE(pool.TryRunHere(&work, kAlone));
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  bool inner_ran = true;
  FunctionWork outer([&] {
    EXPECT_EQ(pool.counts().busy_worker_count, 1);
    inner_ran = pool.TryRunHere(&work, kBesideOthers);
  });
  EXPECT_TRUE(pool.TryRunHere(&outer, kAlone));
  EXPECT_FALSE(inner_ran);
  EXPECT_EQ(pool.counts().offered_count, 2);
  EXPECT_EQ(pool.counts().run_count, 2);
  EXPECT_EQ(pool.counts().elsewhere_turn_count, 2);
  EXPECT_EQ(pool.counts().busy_worker_count, 0);

  // It is cancelled, so it is refused without running.
  FunctionWork late([] { ADD_FAILURE() << "ran after its deadline"; });
  late.set_interrupt({.deadline = SteadyNow()});
  EXPECT_TRUE(pool.TryRunHere(&late, kAlone));
  EXPECT_THAT(late.refusals(),
              ElementsAre(StatusIs(absl::StatusCode::kDeadlineExceeded, _)));

  Gate started[2];
  Gate release;
  const auto block = [&](int i) {
    return [&, i] {
      started[i].Open();
      release.Await();
    };
  };
  FunctionWork first(block(0));
  FunctionWork second(block(1));
  pool.Add(&first);
  started[0].Await();
  EXPECT_FALSE(pool.TryRunHere(&work, kAlone));
  EXPECT_TRUE(pool.TryRunHere(&work, kBesideOthers));
  pool.Add(&second);
  started[1].Await();
  EXPECT_FALSE(pool.TryRunHere(&work, kBesideOthers));
  release.Open();
  pool.Stop();
  EXPECT_FALSE(pool.TryRunHere(&work, kAlone));
  EXPECT_THAT(work.refusals(), IsEmpty());
}

TEST(WorkerPoolTest, ElsewhereTheTurnsOfACallerHaveTheSameLimit) {
  WorkerPool pool({.thread_count = 3, .max_turns_of_caller = 1},
                  {.most_elsewhere = 2});
  Gate started;
  Gate release;
  FunctionWork first([&] {
    started.Open();
    release.Await();
  });
  std::atomic<int> ran = 0;
  FunctionWork same([&] { ++ran; });
  FunctionWork other([&] { ++ran; });
  first.set_flow({1, 0});
  same.set_flow({1, 0});
  other.set_flow({2, 0});
  pool.Add(&first);
  started.Await();
  EXPECT_FALSE(pool.TryRunHere(&same, kBesideOthers));
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(pool.counts().waiting_count, 0);
  EXPECT_TRUE(pool.TryRunHere(&other, kBesideOthers));
  EXPECT_EQ(ran, 1);
  release.Open();
  pool.Stop();
  EXPECT_EQ(pool.counts().busy_worker_count, 0);
}

TEST(WorkerPoolTest, WhatRunsElsewhereTakesAWorkersTurn) {
  Gate started;
  Gate release;
  std::atomic<bool> ended = false;
  FunctionWork elsewhere([&] {
    started.Open();
    release.Await();
    ended = true;
  });
  bool waited = false;
  Gate ran;
  FunctionWork next([&] {
    waited = ended;
    ran.Open();
  });
  WorkerPool pool({.thread_count = 1});
  std::thread caller([&] { EXPECT_TRUE(pool.TryRunHere(&elsewhere, kAlone)); });
  started.Await();
  pool.Add(&next);
  // A worker that did not wait would have begun by then.
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(pool.counts().busy_worker_count, 1);
  EXPECT_EQ(pool.counts().waiting_count, 1);
  release.Open();
  ran.Await();
  EXPECT_TRUE(waited);
  caller.join();
}

cpu_set_t CoresOf(pid_t thread) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  EXPECT_EQ(sched_getaffinity(thread, sizeof(cores), &cores), 0);
  return cores;
}

TEST(WorkerPoolTest, WorkersWaitAtTheirCoresAndMakeThreadsThatGoAnywhere) {
  cpu_set_t all = CoresOf(0);
  const int core_count = CPU_COUNT(&all);
  WorkerPool pool({.thread_count = core_count}, {.have_own_cores = true});
  pid_t worker = 0;
  cpu_set_t of_made;
  Gate ran;
  FunctionWork work([&] {
    worker = gettid();
    std::thread([&] { of_made = CoresOf(0); }).join();
    ran.Open();
  });
  pool.Add(&work);
  ran.Await();
  EXPECT_TRUE(CPU_EQUAL(&of_made, &all));
  const SteadyTime end = SteadyAfter(absl::Seconds(30));
  int worker_core_count = core_count;
  while (worker_core_count != 1 && SteadyNow() < end) {
    cpu_set_t cores = CoresOf(worker);
    worker_core_count = CPU_COUNT(&cores);
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(worker_core_count, 1);
}

TEST(WorkerPoolTest, StopAwaitsWhatRunsElsewhere) {
  Gate started;
  Gate release;
  std::atomic<bool> ended = false;
  FunctionWork work([&] {
    started.Open();
    release.Await();
    ended = true;
  });
  WorkerPool pool({.thread_count = 1});
  std::thread caller([&] { EXPECT_TRUE(pool.TryRunHere(&work, kAlone)); });
  started.Await();
  std::thread stopper([&] {
    pool.Stop();
    EXPECT_TRUE(ended);
  });
  release.Open();
  stopper.join();
  caller.join();
}

TEST(LightQueriesTest, WhereCoresAreMoreThanReadersHalfOfTheseAreLeft) {
  EXPECT_EQ(LightQueries::MostAtOnce(1), 1);
  EXPECT_EQ(LightQueries::MostAtOnce(2), 2);
  EXPECT_EQ(LightQueries::MostAtOnce(3), 1);
  EXPECT_EQ(LightQueries::MostAtOnce(8), 2);
  EXPECT_EQ(LightQueries::MostAtOnce(64), 8);
}

TEST(LightQueriesTest, AGroupIsLightOnceItIsKnownToBe) {
  constexpr auto kMost = LightQueries::kMost;
  LightQueries queries;
  const std::size_t place = LightQueries::PlaceOf("near/shop", /*effort=*/10);
  EXPECT_FALSE(queries.IsLight(place, kMost));
  queries.Took(place, absl::Microseconds(40));
  EXPECT_TRUE(queries.IsLight(place, kMost));
  EXPECT_FALSE(queries.IsLight(place, absl::Microseconds(39)));
  // An interrupted one counts little.
  queries.Took(place, absl::Microseconds(900));
  EXPECT_TRUE(queries.IsLight(place, kMost));
  for (int i = 0; i < 10; ++i) queries.Took(place, absl::Microseconds(900));
  EXPECT_FALSE(queries.IsLight(place, kMost));
  for (int i = 0; i < 20; ++i) queries.Took(place, absl::Microseconds(40));
  EXPECT_TRUE(queries.IsLight(place, kMost));
}

}  // namespace
}  // namespace attendant
