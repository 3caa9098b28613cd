#include "core/catalog/live/background.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "absl/time/time.h"

namespace attendant {
namespace {

// Adds a task of the owner that never begins. The future is ready once Remove
// has dropped the task; Remove then still waits for the running one.
std::future<void> AddTaskToDrop(BackgroundWorker& worker, const void* owner) {
  auto dropped = std::make_shared<std::promise<void>>();
  std::future<void> future = dropped->get_future();
  const std::shared_ptr<void> at_end(
      nullptr, [dropped](void*) { dropped->set_value(); });
  worker.Add(owner, absl::Hours(1), [at_end] {});
  return future;
}

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
    std::atomic<int> ended = 0;
    int ended_before = 0;
    BackgroundWorker worker;
    for (const Lane lane : {Lane::kLong, Lane::kFirst, Lane::kShort}) {
      const int i = static_cast<int>(lane);
      worker.Add(
          &owner, absl::ZeroDuration(),
          [&, i] {
            started[i].set_value();
            go[i].get_future().wait();
            ++ended;
          },
          lane);
      started[i].get_future().wait();
    }
    std::future<void> dropped = AddTaskToDrop(worker, &owner);
    std::thread remover([&] {
      worker.Remove(&owner);
      ended_before = ended;
    });
    dropped.wait();
    for (const int i : {0, 1, 2}) {
      if (i == last) continue;
      go[i].set_value();
      // The lane's next task runs, so the worker has reported the end of the
      // one before.
      std::promise<void> next;
      worker.Add(
          nullptr, absl::ZeroDuration(), [&] { next.set_value(); },
          static_cast<Lane>(i));
      next.get_future().wait();
    }
    go[last].set_value();
    remover.join();
    EXPECT_EQ(ended_before, 3) << last;
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
  std::future<void> dropped = AddTaskToDrop(worker, &owner);
  std::thread remover([&] { worker.Remove(&owner); });
  dropped.wait();
  go.set_value();
  remover.join();
  worker.Hurry(&owner);
  worker.Add(&next, absl::ZeroDuration(), [&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_FALSE(ran);
}

TEST(BackgroundWorkerTest, WhatHasNoMemoryIsDoneAgain) {
  int owner;
  std::atomic<int> begun = 0;
  std::promise<void> done;
  BackgroundWorker worker;
  worker.Add(&owner, absl::ZeroDuration(), [&] {
    if (++begun == 1) throw std::bad_alloc();
    done.set_value();
  });
  done.get_future().wait();
  worker.Remove(&owner);
  EXPECT_EQ(begun, 2);
}

TEST(BackgroundWorkerTest, WhatHasNoMemoryIsRemovedAsWell) {
  int owner;
  std::atomic<int> begun = 0;
  std::promise<void> started;
  BackgroundWorker worker;
  worker.Add(&owner, absl::ZeroDuration(), [&] {
    if (++begun == 1) started.set_value();
    throw std::bad_alloc();
  });
  started.get_future().wait();
  worker.Remove(&owner);
  const int before = begun;
  // Due work runs before the next task.
  worker.Hurry(&owner);
  std::promise<void> done;
  worker.Add(&before, absl::ZeroDuration(), [&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_EQ(begun, before);
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
