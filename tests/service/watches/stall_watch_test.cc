#include "service/watches/stall_watch.h"

#include <gmock/gmock.h>
#include <grpcpp/server_context.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "tests/core/catalog/failing_allocation.h"
#include "tests/support/sanitized.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Context = grpc::CallbackServerContext;

// Uses a clock that only the tests advance. The watch checks every quarter of a
// stall time, in real time.
class StallWatchTest : public ::testing::Test {
 protected:
  void SetUp() override { now_ns_.store(1); }

  StallWatch::Options OptionsOf(absl::Duration stall_time,
                                std::int64_t reply_memory_bytes) {
    return {.stall_time = stall_time,
            .idle_time = 2 * stall_time,
            .reply_memory_bytes = reply_memory_bytes,
            .now = &Now,
            .cancel = [this](const Context& context) {
              MutexLock lock(&mutex_);
              cancelled_.push_back(&context);
            }};
  }

  static SteadyTime Now() {
    look_count_.fetch_add(1);
    return SteadyTime(std::chrono::nanoseconds(now_ns_.load()));
  }
  static void Advance(absl::Duration time) {
    now_ns_.fetch_add(absl::ToInt64Nanoseconds(time));
  }

  // Waits until `count` calls were cancelled; returns them in order.
  std::vector<const Context*> Await(std::size_t count) {
    const SteadyTime end = SteadyAfter(absl::Minutes(1));
    while (SteadyNow() < end) {
      const std::vector<const Context*> cancelled = Cancelled();
      if (cancelled.size() >= count) return cancelled;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return {};
  }

  // Waits until the watch has checked everything that waits now.
  static void AwaitLook() {
    const std::int64_t before = look_count_.load();
    // When the second check from now begins, the first has ended.
    while (look_count_.load() < before + 2) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  std::vector<const Context*> Cancelled() {
    MutexLock lock(&mutex_);
    return cancelled_;
  }

  static inline std::atomic<std::int64_t> now_ns_;
  // Counts the watch's reads of the clock, one per check; waits that begin read
  // it too.
  static inline std::atomic<std::int64_t> look_count_ = 0;
  Mutex mutex_;
  std::vector<const Context*> cancelled_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(StallWatchTest, WhoIsWaitedForTooLongIsCancelled) {
  constexpr absl::Duration kStall = absl::Milliseconds(20);
  StallWatch watch(OptionsOf(kStall, 1 << 30));
  std::array<Context, 5> contexts;
  const auto& [idle, brief, long_reply, read, taken] = contexts;
  StallWatch::Wait of_idle(watch, idle);
  StallWatch::Wait of_brief(watch, brief);
  StallWatch::Wait of_long(watch, long_reply);
  StallWatch::Wait of_read(watch, read);
  StallWatch::Wait of_taken(watch, taken);
  of_brief.Begin(0);
  of_long.Begin(StallWatch::kMinBytesPerSecond);  // has a second more
  of_read.BeginRead();
  of_taken.Begin(0);
  of_taken.End();
  AwaitLook();
  EXPECT_THAT(Cancelled(), IsEmpty());
  Advance(kStall);
  EXPECT_THAT(Await(1), ElementsAre(&brief));
  Advance(kStall);
  EXPECT_THAT(Await(2), ElementsAre(&brief, &read));
  Advance(absl::Seconds(1));
  EXPECT_THAT(Await(3), ElementsAre(&brief, &read, &long_reply));
  EXPECT_EQ(watch.stalled_count(), 3);
}

TEST_F(StallWatchTest, WhereRepliesTakeTooMuchTheLongestWaitingGoes) {
  StallWatch watch(OptionsOf(absl::Hours(1), 100));
  std::array<Context, 5> contexts;
  const auto& [first, second, read, third, last] = contexts;
  StallWatch::Wait of_first(watch, first);
  StallWatch::Wait of_second(watch, second);
  StallWatch::Wait of_read(watch, read);
  StallWatch::Wait of_third(watch, third);
  StallWatch::Wait of_last(watch, last);
  of_read.BeginRead();
  for (StallWatch::Wait* wait : {&of_first, &of_second}) {
    Advance(absl::Milliseconds(1));
    wait->Begin(50);
  }
  Advance(absl::Milliseconds(1));
  of_third.Begin(10);
  EXPECT_THAT(Await(1), ElementsAre(&first));
  // There is room now, and more once another is taken.
  of_second.End();
  of_third.End();
  of_third.Begin(90);
  Advance(absl::Milliseconds(1));
  of_last.Begin(11);
  EXPECT_THAT(Await(2), ElementsAre(&first, &third));
}

// One of the watch's allocations fails, whichever comes nth.
TEST_F(StallWatchTest, WithoutMemoryTheLongestWaitingGoesAllTheSame) {
  if (kSanitized) GTEST_SKIP() << "no allocation fails";
  bool befell = true;
  for (int nth = 1; befell; ++nth) {
    std::atomic<int> cancelled_count = 0;
    StallWatch::Options options = OptionsOf(absl::Hours(1), 100);
    options.cancel = [&](const Context&) { ++cancelled_count; };
    StallWatch watch(options);
    std::array<Context, 2> contexts;
    StallWatch::Wait first(watch, contexts[0]);
    StallWatch::Wait second(watch, contexts[1]);
    first.Begin(60);
    const SteadyTime end = SteadyAfter(absl::Minutes(1));
    const FailingElsewhere failing(nth);
    second.Begin(50);
    while (cancelled_count == 0 && SteadyNow() < end) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    ASSERT_EQ(cancelled_count, 1) << nth;
    befell = failing.befell();
  }
}

TEST_F(StallWatchTest, ACancelledCallMayEndOnTheSpotAndTakeOthersAlong) {
  constexpr absl::Duration kStall = absl::Milliseconds(20);
  std::array<Context, 6> contexts;
  std::array<std::unique_ptr<StallWatch::Wait>, 6> waits;
  StallWatch::Options options = OptionsOf(kStall, 1 << 30);
  std::atomic<int> cancelled_count = 0;
  options.cancel = [&](const Context& context) {
    // Runs on the watch's thread: ends this call's wait and one that is checked
    // next.
    const auto own = static_cast<std::size_t>(&context - contexts.data());
    waits[own].reset();
    waits[own ^ 1].reset();
    ++cancelled_count;
  };
  StallWatch watch(std::move(options));
  for (std::size_t i = 0; i < waits.size(); ++i) {
    waits[i] = std::make_unique<StallWatch::Wait>(watch, contexts[i]);
    waits[i]->Begin(0);
  }
  Advance(kStall);
  const SteadyTime end = SteadyAfter(absl::Minutes(1));
  while (cancelled_count.load() < 3 && SteadyNow() < end) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(cancelled_count.load(), 3);
}

TEST_F(StallWatchTest, ACallOutlivesItsCancellation) {
  constexpr absl::Duration kStall = absl::Milliseconds(20);
  Context context;
  std::atomic<bool> ends = false;
  std::atomic<bool> has_ended = false;
  std::atomic<bool> was_cancelled = false;
  StallWatch::Options options = OptionsOf(kStall, 1 << 30);
  options.cancel = [&](const Context&) {
    was_cancelled = true;
    while (!ends) std::this_thread::yield();
    absl::SleepFor(absl::Milliseconds(5));
    EXPECT_FALSE(has_ended.load());
  };
  StallWatch watch(std::move(options));
  auto wait = std::make_unique<StallWatch::Wait>(watch, context);
  wait->Begin(0);
  Advance(kStall);
  while (!was_cancelled) std::this_thread::yield();
  ends = true;
  wait.reset();
  has_ended = true;
}

}  // namespace
}  // namespace attendant
