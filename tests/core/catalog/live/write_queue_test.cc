#include "core/catalog/live/write_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace attendant {
namespace {

struct Work {
  int number = 0;
  int handled_count = 0;
};

TEST(WriteQueueTest, ALoneWorkIsHandledAtOnce) {
  WriteQueue<Work> queue;
  Work work{.number = 7};
  queue.Run(work, [&](std::span<Work* const> works) {
    EXPECT_EQ(works.size(), 1);
    EXPECT_EQ(works[0], &work);
    EXPECT_EQ(queue.size(), 1);
    return works.size();
  });
  EXPECT_EQ(queue.size(), 0);
}

// Runs `count` works while the first is being handled. Returns how many were
// handled at a time, each at most `most`.
std::vector<std::size_t> HandleBehindAFirst(std::size_t count,
                                            std::size_t most) {
  WriteQueue<Work> queue;
  std::vector<std::size_t> sizes;
  std::vector<int> order;
  std::vector<Work> works(count);
  std::vector<std::thread> threads;
  const auto handle = [&](std::span<Work* const> some) {
    const std::size_t size = std::min(some.size(), most);
    sizes.push_back(size);
    for (Work* work : some.first(size)) {
      ++work->handled_count;
      order.push_back(work->number);
    }
    return size;
  };
  Work first{.number = -1};
  queue.Run(first, [&](std::span<Work* const> some) {
    for (std::size_t i = 0; i < count; ++i) {
      works[i].number = static_cast<int>(i);
      threads.emplace_back([&, i] { queue.Run(works[i], handle); });
      while (queue.size() < i + 2) std::this_thread::yield();
    }
    return some.size();
  });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(works[i].handled_count, 1);
    EXPECT_EQ(order[i], static_cast<int>(i));
  }
  EXPECT_EQ(queue.size(), 0);
  return sizes;
}

TEST(WriteQueueTest, WhatGathersMeanwhileIsHandledTogether) {
  EXPECT_EQ(HandleBehindAFirst(5, 100), (std::vector<std::size_t>{5}));
}

TEST(WriteQueueTest, WhatALeaderLeavesStaysInLine) {
  EXPECT_EQ(HandleBehindAFirst(5, 2), (std::vector<std::size_t>{2, 2, 1}));
}

TEST(WriteQueueTest, ALeaderIsGivenABoundedNumber) {
  const std::size_t most = WriteQueue<Work>::kMaxTogether;
  EXPECT_EQ(HandleBehindAFirst(most + 3, 1000),
            (std::vector<std::size_t>{most, 3}));
}

// Memory may run out, for example: works behind the one that threw must not
// wait forever.
TEST(WriteQueueTest, AHandleThatThrowsLeavesTheLineToTheNext) {
  WriteQueue<Work> queue;
  std::vector<Work> works(3);
  std::vector<std::thread> threads;
  const auto handle = [](std::span<Work* const> some) {
    for (Work* work : some) ++work->handled_count;
    return some.size();
  };
  Work first;
  EXPECT_THROW(
      queue.Run(first,
                [&](std::span<Work* const>) -> std::size_t {
                  for (Work& work : works) {
                    threads.emplace_back([&] { queue.Run(work, handle); });
                  }
                  while (queue.size() < 4) std::this_thread::yield();
                  throw std::bad_alloc();
                }),
      std::bad_alloc);
  // If the queue never drained, the threads would never end.
  ASSERT_LT(queue.size(), 4);
  for (std::thread& thread : threads) thread.join();
  for (const Work& work : works) EXPECT_EQ(work.handled_count, 1);
  EXPECT_EQ(queue.size(), 0);
  queue.Run(first, handle);
  EXPECT_EQ(first.handled_count, 1);
}

TEST(WriteQueueTest, ManyThreadsAreHandledOnceEachAndOneAtATime) {
  WriteQueue<Work> queue;
  std::atomic<int> busy = 0;
  std::int64_t handled = 0;  // only handlers touch it
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        Work work;
        queue.Run(work, [&](std::span<Work* const> works) {
          EXPECT_EQ(busy.fetch_add(1), 0);
          for (Work* each : works) ++each->handled_count;
          handled += static_cast<std::int64_t>(works.size());
          busy.fetch_sub(1);
          return works.size();
        });
        ASSERT_EQ(work.handled_count, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(handled, 8 * 500);
}

}  // namespace
}  // namespace attendant
