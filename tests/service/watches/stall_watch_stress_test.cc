#include <grpcpp/server_context.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "service/watches/stall_watch.h"

namespace attendant {
namespace {

TEST(StallWatchStressTest, CallsEndWhileOthersAreCancelled) {
  constexpr int kThreads = 4;
  constexpr int kCallsEach = 20'000;
  std::atomic<std::int64_t> cancelled_count = 0;
  StallWatch watch({.stall_time = absl::Microseconds(100),
                    .idle_time = absl::Microseconds(100),
                    .reply_memory_bytes = 1000,
                    .cancel = [&](const grpc::CallbackServerContext& context) {
                      EXPECT_EQ(context.peer(), "");  // it is still there
                      ++cancelled_count;
                    }});
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCallsEach; ++i) {
        grpc::CallbackServerContext context;
        StallWatch::Wait wait(watch, context);
        if (i % 3 == 0) {
          wait.BeginRead();
        } else {
          wait.Begin(static_cast<std::size_t>(i % 500));
        }
        if (i % 64 == t) absl::SleepFor(absl::Microseconds(200));
        if (i % 2 == 0) wait.End();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(cancelled_count.load(), 0);
  EXPECT_EQ(watch.stalled_count(), cancelled_count.load());
}

}  // namespace
}  // namespace attendant
