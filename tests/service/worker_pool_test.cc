#include "service/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"

namespace attendant {
namespace {

class FunctionWork final : public Work {
 public:
  explicit FunctionWork(std::function<void()> function, std::string group = "")
      : function_(std::move(function)), group_(std::move(group)) {}
  void Run() override { function_(); }
  absl::string_view group() const override { return group_; }

 private:
  std::function<void()> function_;
  std::string group_;
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

// What is taken along from these, while all workers are busy.
std::vector<Work*> TakenAlong(int thread_count, const Work& like,
                              std::size_t most,
                              const std::vector<Work*>& waiting) {
  std::vector<Gate> started(static_cast<std::size_t>(thread_count));
  Gate release;
  std::vector<std::unique_ptr<FunctionWork>> blockers;
  for (Gate& gate : started) {
    blockers.push_back(std::make_unique<FunctionWork>([&] {
      gate.Open();
      release.Await();
    }));
  }
  WorkerPool pool(thread_count, 100);
  for (const auto& blocker : blockers) EXPECT_TRUE(pool.TryAdd(blocker.get()));
  for (Gate& gate : started) gate.Await();
  for (Work* work : waiting) EXPECT_TRUE(pool.TryAdd(work));
  EXPECT_EQ(pool.waiting_count(), waiting.size());
  std::vector<Work*> taken;
  pool.TakeAlong(like, most, taken);
  EXPECT_EQ(pool.waiting_count(), waiting.size() - taken.size());
  release.Open();
  pool.Stop();
  return taken;
}

TEST(WorkerPoolTest, TakesAlongItsGroupInItsOrder) {
  std::vector<int> ran;
  FunctionWork a1([&] { ran.push_back(1); }, "a");
  FunctionWork b([&] { ran.push_back(2); }, "b");
  FunctionWork none([&] { ran.push_back(3); });
  FunctionWork a2([&] { ran.push_back(4); }, "a");
  FunctionWork a3([&] { ran.push_back(5); }, "a");
  EXPECT_THAT(TakenAlong(1, a1, 2, {&a1, &b, &none, &a2, &a3}),
              ::testing::ElementsAre(&a1, &a2));
  EXPECT_THAT(ran, ::testing::ElementsAre(2, 3, 5));
}

TEST(WorkerPoolTest, LeavesEachWorkerItsShare) {
  std::atomic<int> ran = 0;
  FunctionWork work([&] { ++ran; }, "a");
  const std::vector<Work*> five(5, &work);
  EXPECT_EQ(TakenAlong(2, work, 100, five).size(), 3U);
  EXPECT_EQ(ran, 2);
}

// A work that answers for those it takes along.
class SharedWork final : public Work {
 public:
  SharedWork(WorkerPool& pool, int number)
      : pool_(pool), group_(number % 3 == 0 ? "" : absl::StrCat(number % 3)) {}

  void Run() override {
    std::vector<Work*> works = {this};
    if (!group_.empty()) pool_.TakeAlong(*this, 15, works);
    for (Work* work : works) {
      auto* shared = static_cast<SharedWork*>(work);
      EXPECT_EQ(shared->group_, group_);
      ++shared->run_count_;
    }
  }
  absl::string_view group() const override { return group_; }
  int run_count() const { return run_count_; }

 private:
  WorkerPool& pool_;
  const std::string group_;
  int run_count_ = 0;  // by whichever worker has it: once, so without a lock
};

TEST(WorkerPoolTest, EachWorkIsRunOnceByItselfOrAnother) {
  constexpr int kWorks = 3000;
  WorkerPool pool(3, kWorks);
  std::vector<std::unique_ptr<SharedWork>> works;
  for (int i = 0; i < kWorks; ++i) {
    works.push_back(std::make_unique<SharedWork>(pool, i));
  }
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&, c] {
      for (int i = c; i < kWorks; i += 3) {
        EXPECT_TRUE(pool.TryAdd(works[static_cast<std::size_t>(i)].get()));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  pool.Stop();
  for (const auto& work : works) ASSERT_EQ(work->run_count(), 1);
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
