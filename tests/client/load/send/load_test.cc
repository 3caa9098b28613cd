#include <gmock/gmock.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "attendant/v1/item_service.grpc.pb.h"
#include "client/api/client.h"
#include "client/api/grpc_status.h"
#include "client/load/requests/prepare.h"
#include "client/load/send/background_writer.h"
#include "client/load/send/closed_loop.h"
#include "client/load/send/open_loop.h"
#include "client/load/send/recorder.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "google/rpc/error_details.pb.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pair;

// Answers requests on a thread of its own, in the order in which they were
// sent.
class FakeServer {
 public:
  using Done = Traffic::Done;
  using Answer = std::function<absl::Status(std::int64_t)>;

  explicit FakeServer(Answer answer)
      : answer_(std::move(answer)), thread_([this] { Run(); }) {}
  ~FakeServer() {
    {
      MutexLock lock(&mutex_);
      stopped_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }

  std::function<void(std::int64_t, Done)> Sender() {
    return
        [this](std::int64_t index, Done done) { Send(index, std::move(done)); };
  }

  void Send(std::int64_t index, Done done) {
    MutexLock lock(&mutex_);
    waiting_.push_back({index, std::move(done)});
    max_waiting_ = std::max(max_waiting_, waiting_.size() + busy_);
    changed_.NotifyAll();
  }

  std::size_t max_waiting() {
    MutexLock lock(&mutex_);
    return max_waiting_;
  }

 private:
  struct Request {
    std::int64_t index;
    Done done;
  };

  void Run() {
    while (true) {
      std::vector<Request> requests;
      {
        MutexLock lock(&mutex_);
        while (waiting_.empty() && !stopped_) changed_.Wait(&mutex_);
        if (waiting_.empty()) return;
        requests.swap(waiting_);
        busy_ = requests.size();
      }
      for (Request& request : requests) {
        {
          // The caller may send its next request.
          MutexLock lock(&mutex_);
          --busy_;
        }
        request.done(answer_(request.index));
      }
    }
  }

  const Answer answer_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Request> waiting_ ABSL_GUARDED_BY(mutex_);
  std::size_t busy_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t max_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

ClosedLoopOptions Options(int concurrency) {
  ClosedLoopOptions options;
  options.concurrency = concurrency;
  options.warmup = absl::ZeroDuration();
  options.duration = absl::Milliseconds(200);
  return options;
}

TEST(ClosedLoopTest, KeepsEveryCallerBusyAndNoMore) {
  FakeServer server([](std::int64_t) { return absl::OkStatus(); });
  const LoadResult result =
      RunClosedLoop(Options(3), {.send = server.Sender()});
  EXPECT_EQ(server.max_waiting(), 3u);
  EXPECT_GT(result.total.request_count(), 3);
  EXPECT_EQ(result.total.failed_count(), 0);
}

TEST(ClosedLoopTest, CountsFailuresByCodeAndMessage) {
  FakeServer server([](std::int64_t index) {
    return index % 2 == 0 ? absl::OkStatus() : absl::NotFoundError("no item");
  });
  const LoadResult result =
      RunClosedLoop(Options(1), {.send = server.Sender()});
  const std::int64_t failed = result.total.failed_count();
  EXPECT_NEAR(static_cast<double>(failed), result.total.request_count() / 2.0,
              1);
  EXPECT_EQ(result.total.CountOf(absl::StatusCode::kNotFound), failed);
  EXPECT_THAT(result.error_counts, ElementsAre(Pair("no item", failed)));
}

TEST(ClosedLoopTest, ALoadThatIsStoppedIsAsLongAsItWas) {
  FakeServer server([](std::int64_t) { return absl::OkStatus(); });
  std::atomic<std::int64_t> sent{0};
  ClosedLoopOptions options = Options(2);
  options.duration = absl::Minutes(1);
  Traffic traffic{.send = [&](std::int64_t index, FakeServer::Done done) {
    ++sent;
    server.Send(index, std::move(done));
  }};
  traffic.is_stopped = [&] { return sent >= 100; };
  const LoadResult result = RunClosedLoop(options, traffic);
  EXPECT_NEAR(static_cast<double>(result.total.request_count()), 100, 2);
  EXPECT_GT(result.duration, absl::ZeroDuration());
  EXPECT_LT(result.duration, absl::Seconds(30));
}

// Returns a refusal with a retry delay.
absl::Status TryAgainIn(std::int64_t seconds) {
  google::rpc::RetryInfo retry_info;
  retry_info.mutable_retry_delay()->set_seconds(seconds);
  google::rpc::Status refusal;
  refusal.set_code(static_cast<int>(absl::StatusCode::kUnavailable));
  refusal.add_details()->PackFrom(retry_info);
  return FromRpcStatus(refusal);
}

TEST(ClosedLoopTest, ACallerWaitsAfterAFailure) {
  FakeServer server([](std::int64_t) { return absl::UnavailableError("no"); });
  ClosedLoopOptions options = Options(2);
  options.duration = 3 * kDelayAfterFailure;
  const LoadResult result = RunClosedLoop(options, {.send = server.Sender()});
  // Sends at 0, 100 and 200 ms, or later.
  EXPECT_GE(result.total.request_count(), 2);
  EXPECT_LE(result.total.request_count(), 6);
}

TEST(ClosedLoopTest, ACallerWaitsAsLongAsTheServerSaysAndNotBeyondTheLoad) {
  FakeServer server([](std::int64_t index) {
    return index == 0 ? TryAgainIn(3600) : TryAgainIn(0);
  });
  const LoadResult result =
      RunClosedLoop(Options(2), {.send = server.Sender()});
  // The second caller need not wait.
  EXPECT_GT(result.total.request_count(), 10);
  EXPECT_LT(result.duration, absl::Seconds(30));
}

TEST(ClosedLoopTest, AStopEndsTheWaitAfterAFailure) {
  FakeServer server([](std::int64_t) { return TryAgainIn(3600); });
  ClosedLoopOptions options = Options(2);
  options.duration = absl::Minutes(1);
  Traffic traffic{.send = server.Sender()};
  const SteadyTime begin = SteadyNow();
  traffic.is_stopped = [&] {
    return TimeSince(begin) > absl::Milliseconds(100);
  };
  const LoadResult result = RunClosedLoop(options, traffic);
  EXPECT_EQ(result.total.request_count(), 2);
  EXPECT_LT(result.duration, absl::Seconds(30));
}

// The server stops answering in the middle of the load.
TEST(ClosedLoopTest, WhatIsAnsweredAfterTheEndIsCounted) {
  for (const absl::Status& last :
       {absl::OkStatus(), absl::DeadlineExceededError("no answer")}) {
    FakeServer server([&](std::int64_t index) {
      if (index < 1) return absl::OkStatus();
      absl::SleepFor(absl::Milliseconds(300));
      return last;
    });
    const LoadResult result =
        RunClosedLoop(Options(1), {.send = server.Sender()});
    EXPECT_EQ(result.total.request_count(), 2);
    EXPECT_EQ(result.total.CountOf(last.code()), last.ok() ? 2 : 1);
    if (last.ok()) {
      EXPECT_GE(result.total.latencies().max_ns(), 300'000'000);
    }
    // The load took 0.3 s, not the 0.2 s planned.
    EXPECT_GE(result.duration, absl::Milliseconds(300));
    EXPECT_LE(result.requests_per_second(), 2 / .3);
  }
}

TEST(ClosedLoopTest, WarmupIsNotCounted) {
  FakeServer server([](std::int64_t) { return absl::OkStatus(); });
  std::atomic<std::int64_t> sent{0};
  ClosedLoopOptions options = Options(1);
  options.warmup = absl::Milliseconds(100);
  options.duration = absl::Milliseconds(1);
  const LoadResult result = RunClosedLoop(
      options, {.send = [&](std::int64_t index, FakeServer::Done done) {
        ++sent;
        server.Send(index, std::move(done));
      }});
  EXPECT_LT(result.total.request_count(), sent / 2);
}

OpenLoopOptions AtRate(double rate, absl::Duration duration) {
  OpenLoopOptions options;
  options.profile = RateProfile::Constant(rate, duration);
  options.arrivals = Arrivals::kFixed;
  options.warmup = absl::ZeroDuration();
  return options;
}

TEST(OpenLoopTest, SendsAllThatIsDueAndCountsWhatBecameOfIt) {
  FakeServer server([](std::int64_t index) {
    if (index % 4 == 1) return absl::ResourceExhaustedError("full");
    if (index % 4 == 2) return absl::NotFoundError("gone");
    return absl::OkStatus();
  });
  std::vector<std::int64_t> indexes;
  OpenLoopOptions options = AtRate(1000, absl::Milliseconds(100));
  options.warmup = absl::Milliseconds(20);
  const LoadResult result = RunOpenLoop(
      options, {.send = [&](std::int64_t index, FakeServer::Done done) {
        indexes.push_back(index);
        server.Send(index, std::move(done));
      }});
  EXPECT_EQ(indexes.size(), 120u);
  EXPECT_EQ(indexes.back(), 119);
  EXPECT_EQ(result.total.request_count(), 100);
  EXPECT_EQ(result.total.answered_count(), 50);
  EXPECT_EQ(result.total.refused_count(), 25);
  EXPECT_EQ(result.total.failed_count(), 50);
  EXPECT_THAT(result.error_counts,
              ElementsAre(Pair("full", 25), Pair("gone", 25)));
}

TEST(OpenLoopTest, ALoadThatIsStoppedIsAsLongAsItWas) {
  FakeServer server([](std::int64_t) { return absl::OkStatus(); });
  std::atomic<std::int64_t> sent{0};
  Traffic traffic{.send = [&](std::int64_t index, FakeServer::Done done) {
    ++sent;
    server.Send(index, std::move(done));
  }};
  traffic.is_stopped = [&] { return sent >= 50; };
  OpenLoopOptions options = AtRate(1, absl::Seconds(1));
  options.profile = RateProfile::Steps({1000, 3000}, absl::Minutes(2));
  const LoadResult result = RunOpenLoop(options, traffic);
  EXPECT_EQ(result.total.request_count(), 50);
  EXPECT_GE(result.duration, absl::Milliseconds(48));
  EXPECT_LT(result.duration, absl::Seconds(30));
  EXPECT_EQ(result.due_per_second(), 1000);
  // The second slice never began.
  ASSERT_EQ(result.slices.size(), 1u);
  EXPECT_EQ(result.slices[0].tally.request_count(), 50);
  EXPECT_GE(result.slices[0].duration, absl::Milliseconds(48));
  EXPECT_LE(result.slices[0].duration, result.duration);
}

// The answer to the only request never comes.
TEST(OpenLoopTest, WhatAStoppedLoadWaitsForIsCancelled) {
  Mutex mutex;
  Traffic::Done waiting;
  const SteadyTime begin = SteadyNow();
  Traffic traffic{.send = [&](std::int64_t, Traffic::Done done) {
    MutexLock lock(&mutex);
    waiting = std::move(done);
  }};
  traffic.is_stopped = [&] {
    return TimeSince(begin) > absl::Milliseconds(100);
  };
  traffic.cancel = [&] {
    MutexLock lock(&mutex);
    if (waiting) std::exchange(waiting, nullptr)(absl::CancelledError());
  };
  const LoadResult result =
      RunOpenLoop(AtRate(20, absl::Milliseconds(50)), traffic);
  EXPECT_EQ(result.total.CountOf(absl::StatusCode::kCancelled), 1);
  // There was time for the answer.
  EXPECT_GE(result.duration, absl::Milliseconds(900));
}

TEST(OpenLoopTest, NoRequestThatIsDueLaterKeepsAStoppedLoad) {
  FakeServer server([](std::int64_t) { return absl::OkStatus(); });
  Traffic traffic{.send = server.Sender()};
  const SteadyTime begin = SteadyNow();
  traffic.is_stopped = [&] {
    return TimeSince(begin) > absl::Milliseconds(200);
  };
  // A request is due every 20 seconds.
  const LoadResult result =
      RunOpenLoop(AtRate(0.05, absl::Minutes(2)), traffic);
  EXPECT_LE(result.total.request_count(), 1);
  EXPECT_GE(result.duration, absl::Milliseconds(100));
  EXPECT_LT(result.duration, absl::Seconds(15));
}

// When a server pauses for 100 ms, every request due meanwhile has the latency
// of its wait. A closed loop would omit them (coordinated omission).
TEST(OpenLoopTest, LatencyCountsFromWhenARequestWasDue) {
  FakeServer server([](std::int64_t index) {
    if (index == 0) absl::SleepFor(absl::Milliseconds(100));
    return absl::OkStatus();
  });
  const LoadResult result = RunOpenLoop(AtRate(1000, absl::Milliseconds(100)),
                                        {.send = server.Sender()});
  ASSERT_EQ(result.total.answered_count(), 100);
  // Latencies are about 1, 2, ... 100 ms.
  EXPECT_GE(result.total.latencies().AtPercentile(50), 40'000'000);
  EXPECT_GE(result.total.latencies().AtPercentile(99), 90'000'000);
}

// Latencies also include a pause of the generator.
TEST(OpenLoopTest, WhatIsSentLateIsLateAndSaysSo) {
  FakeServer server([](std::int64_t) { return absl::OkStatus(); });
  const LoadResult result =
      RunOpenLoop(AtRate(1000, absl::Milliseconds(100)),
                  {.send = [&](std::int64_t index, FakeServer::Done done) {
                    if (index == 0) absl::SleepFor(absl::Milliseconds(50));
                    server.Send(index, std::move(done));
                  }});
  EXPECT_EQ(result.total.request_count(), 100);
  EXPECT_GE(result.late_count, 40);
  EXPECT_GE(result.lateness.max_ns(), 48'000'000);
  EXPECT_GE(result.total.latencies().AtPercentile(90), 10'000'000);
}

// The rate due is not the rate reached.
TEST(OpenLoopTest, RatesAreThoseThatTheGeneratorReached) {
  FakeServer server([](std::int64_t) { return absl::OkStatus(); });
  OpenLoopOptions options = AtRate(1, absl::Seconds(1));
  options.profile = RateProfile::Steps({1000, 1000}, absl::Milliseconds(40));
  const LoadResult result = RunOpenLoop(
      options, {.send = [&](std::int64_t index, FakeServer::Done done) {
        absl::SleepFor(absl::Milliseconds(4));
        server.Send(index, std::move(done));
      }});
  EXPECT_EQ(result.total.request_count(), 40);
  EXPECT_GE(result.duration, absl::Milliseconds(160));
  EXPECT_LE(result.requests_per_second(), 250);
  ASSERT_EQ(result.slices.size(), 2u);
  for (const SliceResult& slice : result.slices) {
    EXPECT_EQ(slice.tally.answered_count(), 20);
    EXPECT_DOUBLE_EQ(slice.answers_per_second(),
                     static_cast<double>(slice.answer_count) / 0.02);
  }
  // 40 were due in each; one late answer may count in the next slice.
  EXPECT_LE(result.slices[0].answer_count + result.slices[1].answer_count, 11);
}

TEST(OpenLoopTest, EachSliceHasWhatWasDueInItHoweverLateItWasAnswered) {
  FakeServer server([](std::int64_t index) {
    if (index == 20) absl::SleepFor(absl::Milliseconds(150));
    return absl::OkStatus();
  });
  OpenLoopOptions options = AtRate(1, absl::Seconds(1));
  options.profile = RateProfile::Steps({500, 1000}, absl::Milliseconds(200));
  options.warmup = absl::Milliseconds(20);
  const LoadResult result = RunOpenLoop(options, {.send = server.Sender()});
  ASSERT_EQ(result.slices.size(), 2u);
  EXPECT_EQ(result.slices[0].rate, 500);
  EXPECT_EQ(result.slices[0].tally.answered_count(), 50);
  EXPECT_EQ(result.slices[1].tally.answered_count(), 100);
  EXPECT_EQ(result.total.answered_count(), 150);
  EXPECT_GE(result.duration, absl::Milliseconds(200));
}

TEST(OpenLoopTest, KindsAreCountedApart) {
  FakeServer server([](std::int64_t index) {
    return index % 2 == 0 ? absl::OkStatus() : absl::NotFoundError("gone");
  });
  const LoadResult result = RunOpenLoop(AtRate(1000, absl::Milliseconds(100)),
                                        {.send = server.Sender(),
                                         .kinds = {"even", "odd"},
                                         .kind_of = [](std::int64_t index) {
                                           return static_cast<int>(index % 2);
                                         }});
  ASSERT_EQ(result.kinds.size(), 2u);
  EXPECT_EQ(result.kinds[0].first, "even");
  EXPECT_EQ(result.kinds[0].second.answered_count(), 50);
  EXPECT_EQ(result.kinds[1].second.failed_count(), 50);
}

TEST(MonitorTest, MomentsAndLooksTellOfAllThatWasAnswered) {
  FakeServer server([](std::int64_t) { return absl::OkStatus(); });
  std::int64_t seen = 0;
  LoadView last;
  const LoadResult result =
      RunOpenLoop(AtRate(200, absl::Milliseconds(1000)),
                  {.send = server.Sender(),
                   .watch = [&](const LoadView& view, absl::Duration elapsed) {
                     EXPECT_GE(elapsed, absl::Milliseconds(250));
                     seen += view.recent.answered_count();
                     last = view;
                   }});
  EXPECT_EQ(result.total.answered_count(), 200);
  EXPECT_GT(seen, 0);
  EXPECT_EQ(seen, last.answered_count);
  ASSERT_FALSE(result.moments.empty());
  std::int64_t answered = 0;
  for (const Moment& moment : result.moments) {
    answered += moment.answered_count;
    EXPECT_LE(moment.p50_ns, moment.max_ns);
  }
  EXPECT_EQ(answered, 200);
}

TEST(RecorderTest, AShortEndIsOfTheMomentBefore) {
  Recorder recorder({"requests"}, {}, SteadyNow());
  for (int i = 0; i < 3; ++i) {
    recorder.Send(0);
    recorder.Answer(0, 0, absl::OkStatus(), i);
    if (i == 0) recorder.EndMoment(absl::Seconds(1), absl::Seconds(1));
    if (i == 1) recorder.EndMoment(absl::Seconds(2), absl::Seconds(1));
  }
  recorder.EndLastMoment(absl::Seconds(2.25), absl::Seconds(0.25));
  const LoadResult result = recorder.Take(absl::Seconds(1));
  ASSERT_EQ(result.moments.size(), 2u);
  EXPECT_EQ(result.moments[0].answered_count, 1);
  EXPECT_EQ(result.moments[1].answered_count, 2);
  EXPECT_EQ(result.moments[1].end, absl::Seconds(2.25));
  EXPECT_EQ(result.moments[1].duration, absl::Seconds(1.25));
  EXPECT_EQ(result.moments[1].max_ns, 2);
}

TEST(RecorderTest, ALongerEndIsAMoment) {
  Recorder recorder({"requests"}, {}, SteadyNow());
  recorder.EndMoment(absl::Seconds(1), absl::Seconds(1));
  recorder.EndLastMoment(absl::Seconds(1.5), absl::Seconds(0.5));
  EXPECT_EQ(recorder.Take(absl::Seconds(1)).moments.size(), 2u);
}

TEST(RecorderTest, WhatCanNotWaitIsCountedAndNotSent) {
  Recorder recorder({"requests"},
                    RateProfile::Constant(1, absl::Seconds(1)).Slices(),
                    SteadyNow());
  for (std::int64_t i = 0; i < LoadResult::kMaxWaiting; ++i) {
    ASSERT_TRUE(recorder.Send(0));
  }
  EXPECT_FALSE(recorder.Send(0));
  EXPECT_EQ(recorder.Look().waiting_count, LoadResult::kMaxWaiting);
  for (std::int64_t i = 0; i < LoadResult::kMaxWaiting; ++i) {
    recorder.Answer(0, 0, absl::OkStatus(), 1);
  }
  const LoadResult result = recorder.Take(absl::Seconds(1));
  EXPECT_EQ(result.unsent_count, 1);
  EXPECT_EQ(result.total.answered_count(), LoadResult::kMaxWaiting);
}

// A slow answer does not prolong its own slice, and counts in a later one.
TEST(RecorderTest, SlicesAreAsLongAsPlanned) {
  // The first slice is over; the second is not.
  Recorder recorder({"requests"},
                    RateProfile::Steps({10, 10}, absl::Hours(2)).Slices(),
                    SteadyNow() - absl::ToChronoNanoseconds(absl::Minutes(90)));
  for (int i = 0; i < 4; ++i) recorder.Send(0);
  recorder.Answer(0, 0, absl::OkStatus(), 1);
  recorder.Answer(0, 0, absl::UnavailableError("gone"), 1);
  recorder.Answer(0, 1, absl::OkStatus(), 1);
  recorder.Answer(0, Recorder::kWarmup, absl::OkStatus(), 1);
  const LoadResult result = recorder.Take(absl::Hours(2));
  ASSERT_EQ(result.slices.size(), 2u);
  for (const SliceResult& slice : result.slices) {
    EXPECT_EQ(slice.duration, absl::Hours(1));
  }
  EXPECT_EQ(result.slices[0].tally.request_count(), 2);
  EXPECT_EQ(result.slices[0].answer_count, 0);
  EXPECT_EQ(result.slices[1].tally.request_count(), 1);
  EXPECT_EQ(result.slices[1].answer_count, 3);
}

TEST(RecorderTest, WhatIsAnsweredAfterAStopIsOfNoSlice) {
  const auto slices = RateProfile::Steps({10, 10}, absl::Hours(2)).Slices();
  Recorder recorder({"requests"}, slices,
                    SteadyNow() - absl::ToChronoNanoseconds(absl::Minutes(45)));
  for (int i = 0; i < 2; ++i) recorder.Send(0);
  recorder.Answer(0, 0, absl::OkStatus(), 1);
  recorder.SetSlices(CutAt(absl::Minutes(30), slices));
  recorder.Answer(0, 0, absl::OkStatus(), 1);
  const LoadResult result = recorder.Take(absl::Minutes(30));
  ASSERT_EQ(result.slices.size(), 1u);
  EXPECT_EQ(result.slices[0].duration, absl::Minutes(30));
  EXPECT_EQ(result.slices[0].tally.request_count(), 2);
  EXPECT_EQ(result.slices[0].answer_count, 1);
}

TEST(RecorderTest, MessagesAreBounded) {
  Recorder recorder({"requests"}, {}, SteadyNow());
  for (int i = 0; i < 100; ++i) {
    recorder.Send(0);
    recorder.Answer(0, 0, absl::InternalError(std::to_string(i)), 1);
  }
  const LoadResult result = recorder.Take(absl::Seconds(1));
  EXPECT_EQ(result.error_counts.size(), LoadResult::kMaxMessages + 1);
  EXPECT_EQ(result.error_counts.at("other messages"), 50);
}

TEST(RecorderTest, HowManyWaitMakesNoOtherMessage) {
  Recorder recorder({"requests"}, {}, SteadyNow());
  for (const char* message :
       {"full: got 20, want fewer than 16 (try again in 104ms)",
        "full: got 1024, want fewer than 1024 (try again in 1.5s)",
        "items: got 257"}) {
    recorder.Send(0);
    recorder.Answer(0, 0, absl::ResourceExhaustedError(message), 1);
  }
  EXPECT_THAT(recorder.Take(absl::Seconds(1)).error_counts,
              ElementsAre(Pair("full: got N, want fewer than N", 2),
                          Pair("items: got 257", 1)));
}

TEST(RecorderTest, WhenToTryAgainMakesNoOtherMessage) {
  Recorder recorder({"requests"}, {}, SteadyNow());
  for (const char* message :
       {"full (try again in 104ms)", "full", "full (try again in 1.5s)"}) {
    recorder.Send(0);
    recorder.Answer(0, 0, absl::ResourceExhaustedError(message), 1);
  }
  EXPECT_THAT(recorder.Take(absl::Seconds(1)).error_counts,
              ElementsAre(Pair("full", 3)));
}

TEST(BackgroundWriterTest, WritesItemsOfTheCatalogAndNewOnesInTurns) {
  WriterOptions options;
  options.key_field = "k";
  options.seed = 3;
  options.existing_ids = {"a", "b"};
  options.keys = {{1, 2}, {3, 4}, {5, 6}};
  options.noises = {{0, 0}};
  const auto id = [&](std::int64_t i) { return ItemToWrite(options, i).id(); };
  EXPECT_EQ(id(0), "a");
  EXPECT_EQ(id(1), "load-3-1");
  EXPECT_EQ(id(2), "b");
  EXPECT_EQ(id(3), "load-3-3");
  EXPECT_EQ(id(4), "a");
  EXPECT_EQ(ItemToWrite(options, 4).keys().at("k").SerializeAsString(),
            ItemToWrite(options, 1).keys().at("k").SerializeAsString());
  EXPECT_NE(ItemToWrite(options, 4).keys().at("k").SerializeAsString(),
            ItemToWrite(options, 0).keys().at("k").SerializeAsString());
  options.noises = {{0, 0}, {0, 0.5}};
  EXPECT_NE(ItemToWrite(options, 4).keys().at("k").SerializeAsString(),
            ItemToWrite(options, 1).keys().at("k").SerializeAsString());
  options.existing_ids.clear();
  EXPECT_EQ(id(0), "load-3-0");
}

// An ItemService whose imports refuse every item.
class RefusingItems final : public v1::ItemService::Service {
 public:
  grpc::Status ImportItems(
      grpc::ServerContext* /*context*/,
      grpc::ServerReaderWriter<v1::ImportItemsResponse, v1::ImportItemsRequest>*
          stream) override {
    v1::ImportItemsRequest request;
    std::int64_t count = 0;
    while (stream->Read(&request)) {
      v1::ImportItemsResponse response;
      for (const v1::Item& item : request.items()) {
        if (count == 1) refused_two_.Notify();
        v1::ImportFailure* failure = response.add_failures();
        failure->set_item_index(count++);
        failure->mutable_status()->set_code(grpc::StatusCode::NOT_FOUND);
        failure->mutable_status()->set_message("not " + item.id());
      }
      response.set_acknowledged_count(count);
      stream->Write(response);
    }
    return grpc::Status::OK;
  }

  void AwaitTwo() { refused_two_.WaitForNotification(); }

 private:
  absl::Notification refused_two_;
};

// Does not answer until the client gives up.
class SilentItems final : public v1::ItemService::Service {
 public:
  grpc::Status ImportItems(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ImportItemsResponse, v1::ImportItemsRequest>*
          stream) override {
    v1::ImportItemsRequest request;
    while (stream->Read(&request)) {
      if (!heard_.HasBeenNotified()) heard_.Notify();
    }
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::OK;
  }

  void AwaitOne() { heard_.WaitForNotification(); }

 private:
  absl::Notification heard_;
};

// A server with this service alone, and a client.
struct Served {
  explicit Served(grpc::Service& service) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
    auto connected =
        Client::Connect({.server = absl::StrCat("127.0.0.1:", port)});
    EXPECT_OK(connected);
    client = *std::move(connected);
  }

  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<Client> client;
};

TEST(BackgroundWriterTest, EndsBesideAServerThatHangs) {
  SilentItems items;
  const Served served(items);
  BackgroundWriter writer(served.client.get(),
                          {.catalog = "shop",
                           .key_field = "k",
                           .rate = 10'000,
                           .existing_ids = {},
                           .keys = {{1, 2}},
                           .noises = {{0, 0}},
                           .timeout = absl::Milliseconds(100)});
  items.AwaitOne();
  EXPECT_THAT(writer.Stop().status,
              StatusIs(absl::StatusCode::kDeadlineExceeded, testing::_));
}

TEST(BackgroundWriterTest, CountsRefusalsAndKeepsTheFirst) {
  RefusingItems items;
  const Served served(items);
  BackgroundWriter writer(served.client.get(), {.catalog = "shop",
                                                .key_field = "k",
                                                .rate = 10'000,
                                                .existing_ids = {},
                                                .keys = {{1, 2}},
                                                .noises = {{0, 0}}});
  items.AwaitTwo();
  const WriterResult result = writer.Stop();
  EXPECT_OK(result.status);
  EXPECT_GT(result.sent_count, 1);
  EXPECT_EQ(result.refused_count, result.sent_count);
  EXPECT_THAT(result.first_refusal,
              StatusIs(absl::StatusCode::kNotFound, "not load-1-0"));
}

TEST(ClusteredVectorsTest, AreUnitVectorsThatTheSeedDetermines) {
  ClusteredVectors vectors(16, 5, 7);
  ClusteredVectors same(16, 5, 7);
  ClusteredVectors other(16, 5, 8);
  const std::vector<float> first = vectors.Next();
  EXPECT_EQ(first, same.Next());
  EXPECT_NE(first, other.Next());
  for (int i = 0; i < 100; ++i) {
    double squared_norm = 0;
    for (const float component : vectors.Next()) {
      squared_norm += static_cast<double>(component) * component;
    }
    // 16 components and a factor are each rounded to within 2^-24.
    EXPECT_THAT(squared_norm, DoubleNear(1, 4 * std::ldexp(1.0, -24)));
  }
}

TEST(ClusteredVectorsTest, VectorsOfOneClusterAreClose) {
  ClusteredVectors vectors(128, 1, 3);
  const std::vector<float> a = vectors.Next();
  const std::vector<float> b = vectors.Next();
  double cosine = 0;
  for (std::size_t i = 0; i < a.size(); ++i) cosine += a[i] * b[i];
  // c + x and c + y have cosine 1/2 on average, and a standard deviation of
  // about 1 / sqrt(128) = 0.09.
  EXPECT_NEAR(cosine, 0.5, 0.36);
}

}  // namespace
}  // namespace attendant
