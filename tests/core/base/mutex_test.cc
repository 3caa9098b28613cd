#include "core/base/mutex.h"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"

namespace attendant {
namespace {

struct Counter {
  Mutex mutex;
  CondVar changed;
  int value ABSL_GUARDED_BY(mutex) = 0;
};

TEST(MutexTest, OneHolderAtATime) {
  constexpr int kThreads = 4;
  constexpr int kSteps = 10000;
  Counter counter;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kSteps; ++i) {
        MutexLock lock(&counter.mutex);
        ++counter.value;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(&counter.mutex);
  EXPECT_EQ(counter.value, kThreads * kSteps);
}

TEST(CondVarTest, NotifyWakesWhoWaits) {
  Counter counter;
  std::thread other([&] {
    MutexLock lock(&counter.mutex);
    while (counter.value != 1) counter.changed.Wait(&counter.mutex);
    counter.value = 2;
    counter.changed.NotifyAll();
  });
  {
    MutexLock lock(&counter.mutex);
    counter.value = 1;
    counter.changed.NotifyOne();
    while (counter.value != 2) counter.changed.Wait(&counter.mutex);
  }
  other.join();
}

TEST(CondVarTest, ATimeoutWithoutEndIsNoneAtOnce) {
  constexpr int kMaxWaits = 10;  // some may be spurious
  Counter counter;
  std::thread other;
  int wait_count = 0;
  {
    MutexLock lock(&counter.mutex);
    other = std::thread([&] {
      // A waiting thread releases the lock, repeatedly if waits end at once.
      for (int i = 0; i < 10000; ++i) {
        { MutexLock its_turn(&counter.mutex); }
        std::this_thread::yield();
      }
      MutexLock its_turn(&counter.mutex);
      counter.value = 1;
      counter.changed.NotifyAll();
    });
    while (counter.value == 0 && wait_count < kMaxWaits) {
      counter.changed.WaitWithTimeout(&counter.mutex, absl::InfiniteDuration());
      ++wait_count;
    }
  }
  other.join();
  EXPECT_LT(wait_count, kMaxWaits);
}

// Nobody notifies, so only the timeout ends the waits.
TEST(CondVarTest, WaitEndsAtItsTimeout) {
  constexpr int kMaxWaits = 10;  // some may be spurious
  Counter counter;
  MutexLock lock(&counter.mutex);
  const SteadyTime begin = SteadyNow();
  int wait_count = 0;
  for (; TimeSince(begin) < absl::Milliseconds(20); ++wait_count) {
    counter.changed.WaitWithTimeout(&counter.mutex, absl::Milliseconds(20));
  }
  EXPECT_LE(wait_count, kMaxWaits);
  counter.changed.WaitWithTimeout(&counter.mutex, absl::ZeroDuration());
}

TEST(CondVarTest, TheLockIsFreeDuringAWaitAndHeldAfterIt) {
  constexpr int kMaxWaits = 1000;  // 20 s: the other thread may start late
  Counter counter;
  std::thread other;
  bool was_free = false;
  {
    MutexLock lock(&counter.mutex);
    other = std::thread([&] {
      MutexLock its_turn(&counter.mutex);
      counter.value = 1;
    });
    for (int i = 0; i < kMaxWaits && counter.value == 0; ++i) {
      counter.changed.WaitWithTimeout(&counter.mutex, absl::Milliseconds(20));
    }
    EXPECT_EQ(counter.value, 1);
    std::thread([&] {
      if (!counter.mutex.TryLock()) return;
      was_free = true;
      counter.mutex.Unlock();
    }).join();
  }
  other.join();
  EXPECT_FALSE(was_free);
}

// Hangs if the timeout is mistaken for the length of the wait.
TEST(CondVarTest, NotifyEndsALongWait) {
  Counter counter;
  std::thread other([&] {
    MutexLock lock(&counter.mutex);
    counter.value = 1;
    counter.changed.NotifyOne();
  });
  {
    MutexLock lock(&counter.mutex);
    while (counter.value != 1) {
      counter.changed.WaitWithTimeout(&counter.mutex, absl::Hours(1));
    }
  }
  other.join();
}

}  // namespace
}  // namespace attendant
