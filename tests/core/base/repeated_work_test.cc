#include "core/base/repeated_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>

#include "absl/synchronization/notification.h"

namespace attendant {
namespace {

TEST(RepeatedWorkTest, IsDoneAtOnceAndAgainElsewhere) {
  std::atomic<int> count = 0;
  std::atomic<bool> here = false;
  absl::Notification third;
  {
    const auto caller = std::this_thread::get_id();
    const RepeatedWork work(absl::Milliseconds(1), [&] {
      if (std::this_thread::get_id() == caller) here = true;
      if (++count == 3) third.Notify();
    });
    third.WaitForNotification();
  }
  EXPECT_FALSE(here);
  const int done = count;
  EXPECT_GE(done, 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(count, done) << "goes on after its end";
}

TEST(RepeatedWorkTest, GoesOnAfterAMomentWithoutMemory) {
  std::atomic<int> count = 0;
  absl::Notification second;
  const RepeatedWork work(absl::Milliseconds(1), [&] {
    if (++count == 1) throw std::bad_alloc();
    if (count == 2) second.Notify();
  });
  second.WaitForNotification();
}

TEST(RepeatedWorkTest, EndsWithoutWaitingForTheInterval) {
  absl::Notification begun;
  {
    const RepeatedWork work(absl::Hours(1), [&] { begun.Notify(); });
    begun.WaitForNotification();
  }
}

}  // namespace
}  // namespace attendant
