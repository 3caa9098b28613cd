#include "client/load/results/latency_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace attendant {
namespace {

TEST(LatencyHistogramTest, PercentileIsTheSmallestLatencyThatCoversTheShare) {
  LatencyHistogram latencies;
  for (int i = 1; i <= 1000; ++i) latencies.Add(i);
  EXPECT_EQ(latencies.AtPercentile(50), 500);
  EXPECT_EQ(latencies.AtPercentile(99.9), 999);
  EXPECT_EQ(latencies.AtPercentile(99.99), 1000);
  EXPECT_EQ(latencies.AtPercentile(100), 1000);
  EXPECT_EQ(latencies.AtPercentile(0.01), 1);
  EXPECT_EQ(latencies.CountAbove(50), 500);
  EXPECT_EQ(latencies.CountAbove(99.9), 1);
  EXPECT_EQ(latencies.CountAbove(99.99), 0);
}

TEST(LatencyHistogramTest, NothingHasNoLatency) {
  const LatencyHistogram latencies;
  EXPECT_EQ(latencies.count(), 0);
  EXPECT_EQ(latencies.AtPercentile(50), 0);
  EXPECT_EQ(latencies.mean_ns(), 0);
}

TEST(LatencyHistogramTest,
     PercentilesOfLongLatenciesAreOffByLessThanAThousandth) {
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> draw(14, 3);  // 1.2 ms, widely spread
  LatencyHistogram histogram;
  std::vector<std::int64_t> latencies;
  for (int i = 0; i < 20000; ++i) {
    latencies.push_back(static_cast<std::int64_t>(draw(random)));
    histogram.Add(latencies.back());
  }
  std::ranges::sort(latencies);
  EXPECT_EQ(histogram.min_ns(), latencies.front());
  EXPECT_EQ(histogram.max_ns(), latencies.back());
  for (const double percent : {1., 10., 50., 90., 99., 99.9, 99.99, 100.}) {
    const auto rank = static_cast<std::size_t>(
        std::ceil(percent / 100 * 20000 * (1 - 1e-12)));
    const auto exact = static_cast<double>(latencies[rank - 1]);
    const auto found = static_cast<double>(histogram.AtPercentile(percent));
    EXPECT_GE(found, exact) << percent;
    EXPECT_LE(found, exact * (1 + 1.0 / 1024) + 1) << percent;
  }
}

TEST(LatencyHistogramTest, MergingIsAddingAll) {
  LatencyHistogram all, low, high;
  for (std::int64_t i = 0; i < 1000; ++i) {
    low.Add(i);
    high.Add(i * 1'000'000);
    all.Add(i);
    all.Add(i * 1'000'000);
  }
  low.Merge(high);
  low.Merge(LatencyHistogram());
  EXPECT_EQ(low.count(), all.count());
  EXPECT_EQ(low.min_ns(), 0);
  EXPECT_EQ(low.max_ns(), 999'000'000);
  EXPECT_DOUBLE_EQ(low.mean_ns(), all.mean_ns());
  for (const double percent : {10., 50., 75., 99.}) {
    EXPECT_EQ(low.AtPercentile(percent), all.AtPercentile(percent));
  }
  low.Clear();
  EXPECT_EQ(low.count(), 0);
  EXPECT_EQ(low.AtPercentile(99), 0);
  low.Add(7);
  EXPECT_EQ(low.AtPercentile(99), 7);
}

TEST(LatencyHistogramTest, HoursAndNegativeTimesAreBounded) {
  LatencyHistogram latencies;
  latencies.Add(-5);
  latencies.Add(std::int64_t{1} << 60);
  EXPECT_EQ(latencies.min_ns(), 0);
  EXPECT_EQ(latencies.AtPercentile(50), 0);
  EXPECT_EQ(latencies.max_ns(), std::int64_t{1} << 60);
  EXPECT_GT(latencies.AtPercentile(100), std::int64_t{1} << 40);
}

}  // namespace
}  // namespace attendant
