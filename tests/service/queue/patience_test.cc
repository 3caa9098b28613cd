#include "service/queue/patience.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/interrupt.h"
#include "service/queue/work.h"
#include "service/queue/worker_pool.h"

namespace attendant {
namespace {

constexpr WorkerThreads kLetGoOn = {.are_let_go_on = true};

// Threads inherit the scheduling policy of this one.
class PatienceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const sched_param none = {};
    if (sched_setscheduler(0, SCHED_BATCH, &none) != 0 ||
        sched_setscheduler(0, SCHED_OTHER, &none) != 0) {
      GTEST_SKIP() << "the policy can't be changed here";
    }
  }
};

// Runs until the main thread lets it end.
class SlowWork final : public Work {
 public:
  SlowWork() : Work(wanted_) {}
  void Run() override {
    has_begun_ = true;
    while (!may_end_) absl::SleepFor(absl::Milliseconds(1));
  }
  void Refuse(const absl::Status&) override { was_refused_ = true; }

  void AwaitBegin() const {
    while (!has_begun_) absl::SleepFor(absl::Milliseconds(1));
  }
  void MayEnd() { may_end_ = true; }
  bool was_refused() const { return was_refused_; }

 private:
  Interrupt wanted_;
  std::atomic<bool> has_begun_ = false;
  std::atomic<bool> may_end_ = false;
  std::atomic<bool> was_refused_ = false;
};

// Fills a pool so that it refuses a work. Returns the policy of the thread that
// added the works, after calling `then` on it.
template <typename Then>
int PolicyOfWhoFills(const WorkerThreads& threads, Then then) {
  SlowWork running, waiting, refused;
  WorkerPool pool({.thread_count = 1, .max_waiting_count = 1}, threads);
  int policy = -1;
  std::thread([&] {
    pool.Add(&running);
    running.AwaitBegin();
    pool.Add(&waiting);
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    pool.Add(&refused);
    EXPECT_TRUE(refused.was_refused());
    running.MayEnd();
    waiting.MayEnd();
    then(pool);
    policy = sched_getscheduler(0);
  }).join();
  return policy;
}

TEST_F(PatienceTest, WhoBringsMoreThanMayWaitLetsWorkersGoOn) {
  const auto nothing = [](WorkerPool&) {};
  EXPECT_EQ(PolicyOfWhoFills(kLetGoOn, nothing), SCHED_BATCH);
  EXPECT_EQ(PolicyOfWhoFills({}, nothing), SCHED_OTHER);
}

TEST_F(PatienceTest, EndsWithWhatRunsWhereItArrivesToo) {
  const int policy = PolicyOfWhoFills(kLetGoOn, [](WorkerPool& pool) {
    absl::SleepFor(Patience::kLasts + absl::Milliseconds(5));
    SlowWork light;
    light.MayEnd();
    while (!pool.TryRunHere(&light, /*beside_others=*/false)) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  });
  EXPECT_EQ(policy, SCHED_OTHER);
}

TEST_F(PatienceTest, LastsForAWhileAfterTheLastRefusal) {
  std::thread([] {
    Patience patience(/*may_change=*/true);
    const SteadyTime begin = SteadyNow();
    const auto after = [&](absl::Duration duration) {
      return begin + absl::ToChronoNanoseconds(duration);
    };
    patience.Brought(/*turned_away=*/true, begin);
    EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
    patience.Brought(/*turned_away=*/true, after(Patience::kLasts));
    patience.Brought(/*turned_away=*/false, after(2 * Patience::kLasts));
    EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
    patience.Brought(
        /*turned_away=*/false,
        after(2 * Patience::kLasts + absl::Milliseconds(1)));
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  }).join();
}

TEST_F(PatienceTest, IsNotInherited) {
  std::thread([] {
    Patience patience(/*may_change=*/true);
    patience.Brought(/*turned_away=*/true, SteadyNow());
    std::thread([] {
      EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
      Patience(/*may_change=*/true).Brought(/*turned_away=*/false, SteadyNow());
      EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    }).join();
  }).join();
}

TEST_F(PatienceTest, LeavesAPolicyThatSomebodyWished) {
  std::thread([] {
    Patience patience(/*may_change=*/false);
    patience.Brought(/*turned_away=*/true, SteadyNow());
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  }).join();
}

}  // namespace
}  // namespace attendant
