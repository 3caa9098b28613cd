#include "core/catalog/live/background.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace attendant {
namespace {

TEST(BackgroundWorkerTest, RunsTasksInTheOrderTheyAreDue) {
  std::vector<int> ran;
  std::promise<void> done;
  BackgroundWorker worker;
  std::promise<void> go;
  worker.Add(nullptr, absl::ZeroDuration(), [&] { go.get_future().wait(); });
  worker.Add(nullptr, absl::Milliseconds(20), [&] {
    ran.push_back(2);
    done.set_value();
  });
  worker.Add(nullptr, absl::ZeroDuration(), [&] { ran.push_back(1); });
  go.set_value();
  done.get_future().wait();
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
}

TEST(BackgroundWorkerTest, RemoveDropsWaitingTasksOfTheOwnerOnly) {
  int owner_a, owner_b;
  bool ran_a = false;
  std::promise<void> ran_b;
  BackgroundWorker worker;
  worker.Add(&owner_a, absl::Hours(1), [&] { ran_a = true; });
  worker.Add(&owner_b, absl::Hours(1), [&] { ran_b.set_value(); });
  worker.Remove(&owner_a);
  worker.Hurry(&owner_a);
  worker.Hurry(&owner_b);
  ran_b.get_future().wait();
  EXPECT_FALSE(ran_a);
}

TEST(BackgroundWorkerTest, RemoveWaitsForTheRunningTask) {
  int owner;
  std::promise<void> started;
  std::atomic<bool> finished = false;
  std::promise<void> go;
  BackgroundWorker worker;
  worker.Add(&owner, absl::ZeroDuration(), [&] {
    started.set_value();
    go.get_future().wait();
    finished = true;
  });
  started.get_future().wait();
  std::thread releaser([&] { go.set_value(); });
  worker.Remove(&owner);
  EXPECT_TRUE(finished);
  releaser.join();
}

TEST(BackgroundWorkerTest, NoLaneWaitsForAnother) {
  int owner;
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  BackgroundWorker worker;
  for (const Lane lane : {Lane::kLong, Lane::kFirst, Lane::kShort}) {
    std::promise<void> ran;
    worker.Add(
        &owner, absl::ZeroDuration(),
        [&, gone] {
          ran.set_value();
          gone.wait();
        },
        lane);
    ran.get_future().wait();
  }
  go.set_value();
}

TEST(BackgroundWorkerTest, RemoveWaitsForTasksOfAllLanes) {
  for (const int last : {0, 1, 2}) {
    int owner;
    std::promise<void> started[3];
    std::promise<void> go[3];
    std::atomic<bool> removed = false;
    BackgroundWorker worker;
    for (const Lane lane : {Lane::kLong, Lane::kFirst, Lane::kShort}) {
      const int i = static_cast<int>(lane);
      worker.Add(
          &owner, absl::ZeroDuration(),
          [&, i] {
            started[i].set_value();
            go[i].get_future().wait();
          },
          lane);
      started[i].get_future().wait();
    }
    std::thread remover([&] {
      worker.Remove(&owner);
      removed = true;
    });
    for (const int i : {0, 1, 2}) {
      if (i != last) go[i].set_value();
    }
    // One that waits for no task, or not for all, is done by then.
    absl::SleepFor(absl::Milliseconds(50));
    EXPECT_FALSE(removed) << last;
    go[last].set_value();
    remover.join();
  }
}

TEST(BackgroundWorkerTest, RemoveDropsWhatARunningTaskAdds) {
  int owner, next;
  bool ran = false;
  std::promise<void> started;
  std::promise<void> go;
  std::promise<void> done;
  BackgroundWorker worker;
  worker.Add(&owner, absl::ZeroDuration(), [&] {
    started.set_value();
    go.get_future().wait();
    worker.Add(&owner, absl::Hours(1), [&] { ran = true; });
  });
  started.get_future().wait();
  std::thread remover([&] { worker.Remove(&owner); });
  // It has looked at what waits by then.
  absl::SleepFor(absl::Milliseconds(50));
  go.set_value();
  remover.join();
  worker.Hurry(&owner);
  worker.Add(&next, absl::ZeroDuration(), [&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_FALSE(ran);
}

TEST(BackgroundWorkerTest, DestructionDropsWhatHasNotBegun) {
  bool ran = false;
  {
    BackgroundWorker worker;
    worker.Add(nullptr, absl::Hours(1), [&] { ran = true; });
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace attendant
