#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "service/metrics/instruments.h"
#include "service/metrics/metric_page.h"
#include "service/metrics/process_metrics.h"
#include "service/metrics/server_metrics.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kBounds[] = {1, 10};

TEST(CounterTest, AddsUpWhatThreadsCount) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int t = 0; t < 20; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) counter.Add();
      counter.Add(5);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 20 * 1005);
}

TEST(HistogramTest, CountsAValueAtTheFirstBoundThatItIsNotAbove) {
  Histogram histogram(kBounds);
  for (const double value : {-1.0, 0.5, 1.0, 1.5, 10.0, 11.0}) {
    histogram.Observe(value);
  }
  const Histogram::Reading reading = histogram.Read();
  EXPECT_THAT(reading.counts, ElementsAre(3, 2, 1));
  EXPECT_EQ(reading.count(), 6);
  EXPECT_DOUBLE_EQ(reading.sum, 23);
}

TEST(HistogramTest, NanIsAboveAllBounds) {
  Histogram histogram(kBounds);
  histogram.Observe(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(histogram.Read().counts, ElementsAre(0, 0, 1));
}

TEST(HistogramTest, BoundsAscendAndFit) {
  for (const auto bounds : {SecondsBounds(), CountBounds(), ShareBounds()}) {
    ASSERT_LE(bounds.size(), Histogram::kMaxBoundCount);
    for (std::size_t i = 1; i < bounds.size(); ++i) {
      EXPECT_LT(bounds[i - 1], bounds[i]);
    }
  }
}

TEST(MetricPageTest, WritesFamiliesInTheOrderOfTheirFirstMetric) {
  Histogram histogram(kBounds);
  histogram.Observe(3);
  MetricPage page;
  page.AddGauge("depth", "What waits.", 2, {{"pool", "a"}});
  page.AddCounter("calls_total", "Calls.", 7);
  page.AddGauge("depth", "What waits.", 3, {{"pool", "b \"quoted\""}});
  page.AddHistogram("size", "Sizes.", histogram);
  EXPECT_EQ(page.Text(),
            "# HELP depth What waits.\n"
            "# TYPE depth gauge\n"
            "depth{pool=\"a\"} 2\n"
            "depth{pool=\"b \\\"quoted\\\"\"} 3\n"
            "# HELP calls_total Calls.\n"
            "# TYPE calls_total counter\n"
            "calls_total 7\n"
            "# HELP size Sizes.\n"
            "# TYPE size histogram\n"
            "size_count 1\n"
            "size_sum 3\n"
            "size_bucket{le=\"1\"} 0\n"
            "size_bucket{le=\"10\"} 1\n"
            "size_bucket{le=\"+Inf\"} 1\n");
}

TEST(ProcessMetricsTest, TellsWhatTheSystemKnows) {
  MetricPage page;
  AddProcessMetrics(page);
  for (const char* name :
       {"process_cpu_seconds_total ", "process_resident_memory_bytes ",
        "process_virtual_memory_bytes ", "process_open_fds ",
        "process_max_fds ", "process_start_time_seconds "}) {
    EXPECT_THAT(page.Text(), HasSubstr(std::string("\n") + name));
  }
  EXPECT_THAT(page.Text(), Not(HasSubstr("process_open_fds 0\n")));
}

class ServerMetricsTest : public ::testing::Test {
 protected:
  std::string Page() const {
    MetricPage page;
    metrics_.Write(page);
    return page.Text();
  }

  const std::array<Method, 2> methods_ = {
      {{"a.Service", "Ask", "unary", true, 0},
       {"a.Service", "Tell", "unary", false, 1}}};
  ServerMetrics metrics_{methods_};
};

TEST_F(ServerMetricsTest, CountsCallsByMethodAndCode) {
  CallMetrics& calls = metrics_.calls(methods_[1]);
  calls.started.Add(3);
  calls.Handled(absl::StatusCode::kOk, absl::Milliseconds(2));
  calls.Handled(absl::StatusCode::kResourceExhausted, absl::Seconds(100));
  const std::string page = Page();
  const std::string tell =
      "{grpc_type=\"unary\",grpc_service=\"a.Service\",grpc_method=\"Tell\"";
  EXPECT_THAT(page, HasSubstr("grpc_server_started_total" + tell + "} 3\n"));
  EXPECT_THAT(page, HasSubstr("grpc_server_handled_total" + tell +
                              ",grpc_code=\"OK\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("grpc_server_handling_seconds_bucket" + tell +
                              ",grpc_code=\"OK\",le=\"0.001\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("grpc_server_handling_seconds_bucket" + tell +
                              ",grpc_code=\"OK\",le=\"0.0025\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("grpc_server_handling_seconds_sum" + tell +
                              ",grpc_code=\"ResourceExhausted\"} 100\n"));
}

TEST_F(ServerMetricsTest, MethodsThatNobodyCalledAreThere) {
  EXPECT_THAT(Page(),
              HasSubstr("grpc_server_handled_total{grpc_type=\"unary\","
                        "grpc_service=\"a.Service\",grpc_method=\"Ask\","
                        "grpc_code=\"OK\"} 0\n"));
}

TEST_F(ServerMetricsTest, ACodeThatIsNoneIsUnknown) {
  metrics_.calls(methods_[0])
      .Handled(static_cast<absl::StatusCode>(99), absl::ZeroDuration());
  EXPECT_THAT(Page(), HasSubstr("grpc_code=\"Unknown\"} 1\n"));
}

TEST_F(ServerMetricsTest, FirstCallsOfACodeAreCountedOnceEach) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      metrics_.calls(methods_[0])
          .Handled(absl::StatusCode::kAborted, absl::ZeroDuration());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Page(), HasSubstr("grpc_code=\"Aborted\"} 8\n"));
}

TEST_F(ServerMetricsTest, WritesEveryCounter) {
  metrics_.shed[ShedReason::kQueueFull].Add(2);
  metrics_.masses[KnownMass::kEstimate].Add(4);
  metrics_.rows_scored.Add(1000);
  metrics_.slow_queries.Add();
  metrics_.lists_visited.Add(32);
  metrics_.batch_queries.Observe(16);
  metrics_.returned_mass.Observe(0.5);
  metrics_.shortlist_mass.Observe(0.75);
  metrics_.mass_width.Observe(0.01);
  const std::string page = Page();
  for (const char* line :
       {"attendant_shed_total{reason=\"queue_full\"} 2\n",
        "attendant_shed_total{reason=\"draining\"} 0\n",
        "attendant_answers_total{mass=\"estimate\"} 4\n",
        "attendant_rows_scored_total 1000\n",
        "attendant_slow_queries_total 1\n",
        "attendant_lists_visited_total 32\n",
        "attendant_batch_queries_sum 16\n", "attendant_returned_mass_sum 0.5\n",
        "attendant_shortlist_mass_sum 0.75\n",
        "attendant_mass_interval_width_sum 0.01\n"}) {
    EXPECT_THAT(page, HasSubstr(std::string("\n") + line));
  }
}

}  // namespace
}  // namespace attendant
