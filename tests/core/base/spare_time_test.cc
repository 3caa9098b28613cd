#include "core/base/spare_time.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "tests/support/no_more_threads.h"

namespace attendant {
namespace {

TEST(SpareTimeTest, WorkRunsOnAThreadOfItsOwnAndIsWaitedFor) {
  for (const Share share : {Share::kEven, Share::kLow, Share::kIdle}) {
    const int before = getpriority(PRIO_PROCESS, 0);
    std::thread::id id = std::this_thread::get_id();
    RunInSpareTime(share, [&] { id = std::this_thread::get_id(); });
    EXPECT_NE(id, std::this_thread::get_id());
    EXPECT_EQ(getpriority(PRIO_PROCESS, 0), before);
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  }
}

TEST(SpareTimeTest, ItsShareIsThatOfItsThread) {
  int nice = 0;
  RunInSpareTime(Share::kLow, [&] { nice = getpriority(PRIO_PROCESS, 0); });
  EXPECT_EQ(nice, std::max(10, getpriority(PRIO_PROCESS, 0)));
  RunInSpareTime(Share::kEven, [&] { nice = getpriority(PRIO_PROCESS, 0); });
  EXPECT_EQ(nice, getpriority(PRIO_PROCESS, 0));
  int policy = -1;
  RunInSpareTime(Share::kIdle, [&] { policy = sched_getscheduler(0); });
  EXPECT_EQ(policy, SCHED_IDLE);
}

TEST(SpareTimeTest, WhatItThrowsIsThrownOn) {
  EXPECT_THROW(
      RunInSpareTime(Share::kLow, [] { throw std::runtime_error("no"); }),
      std::runtime_error);
}

TEST(SpareTimeTest, WhereThereAreNoMoreThreadsTheCallingOneDoesIt) {
  const NoMoreThreads none;
  std::thread::id id;
  RunInSpareTime(Share::kLow, [&] { id = std::this_thread::get_id(); });
  EXPECT_EQ(id, std::this_thread::get_id());
}

// How often the calling thread slept or waited.
std::int64_t SleepCount() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// Keeps every core busy with more than it can do.
class BusyCores {
 public:
  BusyCores() {
    for (long i = 0; i <= sysconf(_SC_NPROCESSORS_ONLN); ++i) {
      threads_.emplace_back([](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
        }
      });
    }
  }

 private:
  std::vector<std::jthread> threads_;
};

bool MayUseEveryCore() {
  cpu_set_t usable;
  return sched_getaffinity(0, sizeof(usable), &usable) == 0 &&
         CPU_COUNT(&usable) == sysconf(_SC_NPROCESSORS_ONLN);
}

TEST(MakeWayTest, OfTheIdleShareSleepsWhileOthersWantEveryCore) {
  if (!MayUseEveryCore()) GTEST_SKIP() << "for others' cores nobody sleeps";
  const BusyCores busy;
  RunInSpareTime(Share::kIdle, [] {
    const std::int64_t enough = SleepCount() + 10;
    const SteadyTime end = SteadyAfter(absl::Minutes(1));
    while (SleepCount() < enough && SteadyNow() < end) MakeWay();
    EXPECT_GE(SleepCount(), enough);
  });
}

TEST(MakeWayTest, OfAnotherShareGoesOn) {
  const BusyCores busy;
  for (const Share share : {Share::kEven, Share::kLow}) {
    RunInSpareTime(share, [] {
      const std::int64_t before = SleepCount();
      // A hundred turns; a page fault may make the thread wait meanwhile.
      const SteadyTime end = SteadyAfter(absl::Milliseconds(20));
      while (SteadyNow() < end) MakeWay();
      EXPECT_LT(SleepCount(), before + 5);
    });
  }
}

}  // namespace
}  // namespace attendant
