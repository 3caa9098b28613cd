#include "service/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace attendant {
namespace {

class FunctionWork final : public Work {
 public:
  explicit FunctionWork(std::function<void()> function)
      : function_(std::move(function)) {}
  void Run() override { function_(); }

 private:
  std::function<void()> function_;
};

// Something that threads wait for.
class Gate {
 public:
  void Open() {
    MutexLock lock(&mutex_);
    open_ = true;
    opened_.NotifyAll();
  }
  void Await() {
    MutexLock lock(&mutex_);
    while (!open_) opened_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar opened_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(WorkerPoolTest, RunsEveryWorkOnce) {
  std::atomic<int> count = 0;
  FunctionWork work([&] { ++count; });
  {
    WorkerPool pool(4, 1000);
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(pool.TryAdd(&work));
  }
  EXPECT_EQ(count, 1000);
}

TEST(WorkerPoolTest, OneThreadRunsInOrder) {
  std::vector<int> order;
  std::vector<std::unique_ptr<FunctionWork>> works;
  for (int i = 0; i < 100; ++i) {
    works.push_back(
        std::make_unique<FunctionWork>([&order, i] { order.push_back(i); }));
  }
  {
    WorkerPool pool(1, 100);
    for (const auto& work : works) ASSERT_TRUE(pool.TryAdd(work.get()));
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
  FunctionWork work([&] { ++count; });
  {
    WorkerPool pool(1, 3);
    ASSERT_TRUE(pool.TryAdd(&blocker));
    started.Await();  // the queue is empty again
    EXPECT_TRUE(pool.TryAdd(&work));
    EXPECT_TRUE(pool.TryAdd(&work));
    EXPECT_TRUE(pool.TryAdd(&work));
    EXPECT_FALSE(pool.TryAdd(&work));
    release.Open();
  }
  EXPECT_EQ(count, 3);
}

TEST(WorkerPoolTest, ThreadsWorkSideBySide) {
  // Each of two works waits for the other: one thread alone would hang.
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
  WorkerPool pool(2, 2);
  ASSERT_TRUE(pool.TryAdd(&a));
  ASSERT_TRUE(pool.TryAdd(&b));
}

TEST(WorkerPoolTest, TakesNothingAfterStop) {
  FunctionWork work([] { ADD_FAILURE() << "ran after Stop"; });
  WorkerPool pool(2, 2);
  pool.Stop();
  EXPECT_FALSE(pool.TryAdd(&work));
  pool.Stop();
}

}  // namespace
}  // namespace attendant
