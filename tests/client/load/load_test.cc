#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "client/load/closed_loop.h"
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
  const ClosedLoopResult result =
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
  const ClosedLoopResult result =
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
  const ClosedLoopResult result =
      RunClosedLoop(options, [&](std::int64_t index, FakeServer::Done done) {
        ++sent;
        server.Send(index, std::move(done));
      });
  EXPECT_LT(result.request_count(), sent / 2);
}

TEST(ClosedLoopResultTest, PercentileIsTheSmallestLatencyThatCoversTheShare) {
  ClosedLoopResult result;
  for (int i = 1; i <= 1000; ++i) result.latencies_ns.push_back(i);
  EXPECT_EQ(result.LatencyAtPercentile(50), 500);
  EXPECT_EQ(result.LatencyAtPercentile(99.9), 999);
  EXPECT_EQ(result.LatencyAtPercentile(100), 1000);
  EXPECT_EQ(result.LatencyAtPercentile(0.01), 1);
  EXPECT_EQ(ClosedLoopResult().LatencyAtPercentile(50), 0);
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

}  // namespace
}  // namespace attendant
