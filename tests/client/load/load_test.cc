#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "client/load/background_writer.h"
#include "client/load/closed_loop.h"
#include "client/load/open_loop.h"
#include "client/load/prepare.h"
#include "client/load/report.h"
#include "client/load/verify.h"
#include "core/base/mutex.h"

namespace attendant {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pair;

// Answers requests from a thread of its own, in the order they were sent.
class FakeServer {
 public:
  using Done = std::function<void(const absl::Status&)>;
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
          // Answered: its caller may send the next.
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
      RunClosedLoop(Options(3), [&](std::int64_t index, FakeServer::Done done) {
        server.Send(index, std::move(done));
      });
  EXPECT_EQ(server.max_waiting(), 3u);
  EXPECT_GT(result.request_count(), 3);
  EXPECT_EQ(result.failed_count(), 0);
}

TEST(ClosedLoopTest, CountsFailuresByCodeAndMessage) {
  FakeServer server([](std::int64_t index) {
    return index % 2 == 0 ? absl::OkStatus() : absl::NotFoundError("no item");
  });
  const LoadResult result =
      RunClosedLoop(Options(1), [&](std::int64_t index, FakeServer::Done done) {
        server.Send(index, std::move(done));
      });
  const std::int64_t failed = result.failed_count();
  EXPECT_NEAR(static_cast<double>(failed), result.request_count() / 2.0, 1);
  EXPECT_EQ(result.status_counts.at(absl::StatusCode::kNotFound), failed);
  EXPECT_THAT(result.error_counts, ElementsAre(Pair("no item", failed)));
}

TEST(ClosedLoopTest, WarmupIsNotCounted) {
  FakeServer server([](std::int64_t) { return absl::OkStatus(); });
  std::atomic<std::int64_t> sent{0};
  ClosedLoopOptions options = Options(1);
  options.warmup = absl::Milliseconds(100);
  options.duration = absl::Milliseconds(1);
  const LoadResult result =
      RunClosedLoop(options, [&](std::int64_t index, FakeServer::Done done) {
        ++sent;
        server.Send(index, std::move(done));
      });
  EXPECT_LT(result.request_count(), sent / 2);
}

TEST(ScheduleTest, FixedArrivalsLieAtEqualDistances) {
  Schedule schedule(4, Arrivals::kFixed, 1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(schedule.Next(), absl::Milliseconds(250 * i));
  }
}

TEST(ScheduleTest, PoissonArrivalsHaveTheRateAndSpreadOfTheirProcess) {
  constexpr int kCount = 100000;
  Schedule schedule(1000, Arrivals::kPoisson, 7);
  Schedule same(1000, Arrivals::kPoisson, 7);
  Schedule other(1000, Arrivals::kPoisson, 8);
  double sum = 0;
  double sum_square = 0;
  absl::Duration last = absl::ZeroDuration();
  bool differs = false;
  for (int i = 0; i < kCount; ++i) {
    const absl::Duration due = schedule.Next();
    EXPECT_EQ(due, same.Next());
    differs |= due != other.Next();
    ASSERT_GE(due, last);
    const double gap_ms = absl::ToDoubleMilliseconds(due - last);
    last = due;
    sum += gap_ms;
    sum_square += gap_ms * gap_ms;
  }
  EXPECT_TRUE(differs);
  // Gaps have mean 1 ms and deviation 1 ms: the mean of kCount of them is
  // within 5 / sqrt(kCount), and that of their squares, 2 with deviation
  // sqrt(20), within 5 sqrt(20 / kCount).
  EXPECT_NEAR(sum / kCount, 1, 5 / std::sqrt(kCount));
  EXPECT_NEAR(sum_square / kCount, 2, 5 * std::sqrt(20.0 / kCount));
}

OpenLoopOptions AtRate(double rate, absl::Duration duration) {
  OpenLoopOptions options;
  options.rate = rate;
  options.arrivals = Arrivals::kFixed;
  options.warmup = absl::ZeroDuration();
  options.duration = duration;
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
  const LoadResult result =
      RunOpenLoop(options, [&](std::int64_t index, FakeServer::Done done) {
        indexes.push_back(index);
        server.Send(index, std::move(done));
      });
  EXPECT_EQ(indexes.size(), 120u);
  EXPECT_EQ(indexes.back(), 119);
  EXPECT_EQ(result.request_count(), 100);
  EXPECT_EQ(result.latencies_ns.size(), 50u);
  EXPECT_EQ(result.refused_count(), 25);
  EXPECT_EQ(result.failed_count(), 50);
  EXPECT_EQ(result.answers_per_second(), 500);
  EXPECT_THAT(result.error_counts,
              ElementsAre(Pair("full", 25), Pair("gone", 25)));
}

// A server that stands still for 100 ms makes all that came meanwhile wait, and
// each of them says so: no omission that a closed loop would make.
TEST(OpenLoopTest, LatencyCountsFromWhenARequestWasDue) {
  FakeServer server([](std::int64_t index) {
    if (index == 0) absl::SleepFor(absl::Milliseconds(100));
    return absl::OkStatus();
  });
  const LoadResult result =
      RunOpenLoop(AtRate(1000, absl::Milliseconds(100)),
                  [&](std::int64_t index, FakeServer::Done done) {
                    server.Send(index, std::move(done));
                  });
  ASSERT_EQ(result.latencies_ns.size(), 100u);
  // About 1, 2, ... 100 ms.
  EXPECT_GE(result.LatencyAtPercentile(50), 40'000'000);
  EXPECT_GE(result.LatencyAtPercentile(99), 90'000'000);
}

// A generator that stands still is no excuse either.
TEST(OpenLoopTest, WhatIsSentLateIsLateAndSaysSo) {
  FakeServer server([](std::int64_t) { return absl::OkStatus(); });
  const LoadResult result =
      RunOpenLoop(AtRate(1000, absl::Milliseconds(100)),
                  [&](std::int64_t index, FakeServer::Done done) {
                    if (index == 0) absl::SleepFor(absl::Milliseconds(50));
                    server.Send(index, std::move(done));
                  });
  EXPECT_EQ(result.request_count(), 100);
  EXPECT_GE(result.late_count, 40);
  EXPECT_GE(result.latest_ns, 48'000'000);
  EXPECT_GE(result.LatencyAtPercentile(90), 10'000'000);
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

TEST(LoadResultTest, PercentileIsTheSmallestLatencyThatCoversTheShare) {
  LoadResult result;
  for (int i = 1; i <= 1000; ++i) result.latencies_ns.push_back(i);
  EXPECT_EQ(result.LatencyAtPercentile(50), 500);
  EXPECT_EQ(result.LatencyAtPercentile(99.9), 999);
  EXPECT_EQ(result.LatencyAtPercentile(100), 1000);
  EXPECT_EQ(result.LatencyAtPercentile(0.01), 1);
  EXPECT_EQ(LoadResult().LatencyAtPercentile(50), 0);
}

v1::AttendResponse Answer(
    const std::vector<std::pair<std::string, float>>& items) {
  v1::AttendResponse answer;
  for (const auto& [id, logit] : items) {
    v1::AttendedItem* item = answer.add_items();
    item->set_id(id);
    item->set_logit(logit);
  }
  return answer;
}

TEST(VerifyTest, RecallIsTheShareOfTheExactItemsFound) {
  const auto exact = Answer({{"a", 3}, {"b", 2}, {"c", 1}, {"d", 0}});
  EXPECT_DOUBLE_EQ(Recall(exact, exact), 1);
  EXPECT_DOUBLE_EQ(Recall(Answer({{"a", 3}, {"x", 2}}), exact), 0.25);
  EXPECT_DOUBLE_EQ(Recall(Answer({}), Answer({})), 1);
}

TEST(VerifyTest, LogitsOfSharedItemsAreCompared) {
  const auto exact = Answer({{"a", 3}, {"b", 2}});
  EXPECT_EQ(MaxLogitDifference(Answer({{"a", 3}, {"x", 9}}), exact), 0);
  EXPECT_EQ(MaxLogitDifference(Answer({{"b", 2.5}, {"a", 3}}), exact), 0.5);
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
    // 16 components rounded to within 2^-24 of themselves, and a factor too.
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

TEST(ReportTest, JsonCarriesWhatGhzReports) {
  LoadReport report;
  report.result.duration = absl::Seconds(2);
  report.result.latencies_ns = {1000, 3000};
  report.result.status_counts = {{absl::StatusCode::kOk, 2},
                                 {absl::StatusCode::kAborted, 1}};
  report.result.error_counts = {{"broken \xff", 1}};
  report.verify = VerifyResult{10, 0.97, 0.5, 0.25};
  report.options = {{"concurrency", 4}};
  const auto json = nlohmann::json::parse(JsonReport(report));
  EXPECT_EQ(json["count"], 3);
  EXPECT_EQ(json["total"], 2'000'000'000);
  EXPECT_EQ(json["average"], 2000);
  EXPECT_EQ(json["fastest"], 1000);
  EXPECT_EQ(json["slowest"], 3000);
  EXPECT_EQ(json["rps"], 1.5);
  EXPECT_EQ(json["statusCodeDistribution"]["OK"], 2);
  EXPECT_EQ(json["statusCodeDistribution"]["ABORTED"], 1);
  EXPECT_EQ(json["latencyDistribution"][0]["percentage"], 50);
  EXPECT_EQ(json["latencyDistribution"][0]["latency"], 1000);
  EXPECT_EQ(json["verify"]["recall"], 0.97);
  EXPECT_EQ(json["options"]["concurrency"], 4);
}

TEST(ReportTest, TextNamesTheLoopAndThePercentiles) {
  LoadReport report;
  report.result.duration = absl::Seconds(1);
  report.result.latencies_ns = {2'000'000};
  report.result.status_counts = {{absl::StatusCode::kOk, 1}};
  const std::string text = TextReport(report);
  EXPECT_THAT(text, ::testing::HasSubstr("closed loop: 1 requests"));
  EXPECT_THAT(text, ::testing::HasSubstr("p99.9 2.000"));
}

TEST(ReportTest, AnOpenLoopSaysWhatWasSentAnsweredRefusedAndLate) {
  LoadReport report;
  report.rate = 2000;
  report.result.duration = absl::Seconds(1);
  report.result.latencies_ns = {2'000'000};
  report.result.status_counts = {{absl::StatusCode::kOk, 1},
                                 {absl::StatusCode::kResourceExhausted, 2},
                                 {absl::StatusCode::kInternal, 3}};
  report.result.late_count = 4;
  report.result.latest_ns = 5'000'000;
  report.writes = WriterResult{.duration = absl::Seconds(2),
                               .due_count = 10,
                               .sent_count = 9,
                               .stored_count = 8,
                               .refused_count = 0,
                               .status = absl::OkStatus()};
  const std::string text = TextReport(report);
  EXPECT_THAT(text, ::testing::HasSubstr(
                        "open loop at 2000 a second: 6 sent in 1.0 s, 1 "
                        "answered, 2 refused, 3 failed otherwise"));
  EXPECT_THAT(text, ::testing::HasSubstr("4 sent over 1ms late"));
  EXPECT_THAT(text, ::testing::HasSubstr("8 stored (4 a second)"));
  const auto json = nlohmann::json::parse(JsonReport(report));
  EXPECT_EQ(json["openLoop"]["sent"], 6);
  EXPECT_EQ(json["openLoop"]["answered"], 1);
  EXPECT_EQ(json["openLoop"]["refused"], 2);
  EXPECT_EQ(json["openLoop"]["late"], 4);
  EXPECT_EQ(json["writes"]["stored"], 8);
  EXPECT_EQ(json["writes"]["storedPerSecond"], 4);
}

}  // namespace
}  // namespace attendant
