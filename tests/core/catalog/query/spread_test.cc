#include "core/catalog/query/spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <vector>

namespace attendant {
namespace {

struct Truth {
  double log_partition = 0;
  double entropy = 0;
  double effective_count = 0;
};

Truth TruthOf(const std::vector<float>& logits) {
  const double max = *std::ranges::max_element(logits);
  double sum = 0;
  double gap = 0;
  double square = 0;
  for (const float logit : logits) {
    const double e = std::exp(logit - max);
    sum += e;
    gap += e * (logit - max);
    square += e * e;
  }
  return {max + std::log(sum), std::log(sum) - gap / sum, sum * sum / square};
}

SoftmaxPartition PartitionOf(std::span<const float> logits) {
  SoftmaxPartition partition;
  if (!logits.empty()) {
    partition.Add(logits.data(), static_cast<std::int64_t>(logits.size()),
                  nullptr);
  }
  return partition;
}

// Logits, of which the first `scored` were scored from floats. Those include
// the two best, as in a scan with proven results.
struct Rows {
  std::vector<float> logits;  // the first two are the best
  std::size_t scored = 2;

  HeadScan Scan() const {
    const std::span<const float> all(logits);
    HeadScan scan;
    scan.partition = PartitionOf(all.first(scored));
    scan.unkept = PartitionOf(all.subspan(scored));
    scan.partition.Merge(scan.unkept);
    scan.shortlist = {{.logit = logits[0]}, {.logit = logits[1]}};
    scan.exact = false;
    scan.complete = false;
    scan.results_exact = true;
    return scan;
  }
};

constexpr PartitionError kKnown = {MassMethod::kBound, 0, 0};

// Slack for sums of floats, and for the reference's own.
double SlackOf(double number) { return 1e-4 * (1 + number); }

TEST(SpreadTest, WhatIsExactIsItsOwnInterval) {
  const std::vector<float> logits = {3, 2, 1, 0};
  HeadScan scan;
  scan.partition = PartitionOf(logits);
  scan.shortlist = {{.logit = 3}};
  const AttentionSpread spread = SpreadOf(scan, {MassMethod::kExact, 0, 0});
  const Truth truth = TruthOf(logits);
  EXPECT_NEAR(*spread.entropy, truth.entropy, 1e-6);
  EXPECT_EQ(spread.entropy_interval->method, MassMethod::kExact);
  EXPECT_EQ(spread.entropy_interval->lower_bound, *spread.entropy);
  EXPECT_EQ(spread.entropy_interval->upper_bound, *spread.entropy);
  EXPECT_NEAR(spread.effective_count, truth.effective_count, 1e-5);
  EXPECT_EQ(spread.effective_count_interval.lower_bound,
            spread.effective_count);
  EXPECT_EQ(spread.effective_count_interval.upper_bound,
            spread.effective_count);
}

TEST(SpreadTest, NothingIsSharedByNothing) {
  const AttentionSpread spread =
      SpreadOf(HeadScan(), {MassMethod::kExact, 0, 0});
  EXPECT_FALSE(spread.entropy.has_value());
  EXPECT_FALSE(spread.entropy_interval.has_value());
  EXPECT_EQ(spread.effective_count, 0);
  EXPECT_EQ(spread.effective_count_interval.upper_bound, 0);
}

// Equal rows share the mass as evenly as possible.
TEST(SpreadTest, EqualRowsReachTheUpperBounds) {
  Rows rows = {.logits = {2, 1.5, -1, -1, -1, -1, -1, -1}};
  const Truth truth = TruthOf(rows.logits);
  const AttentionSpread spread = SpreadOf(rows.Scan(), kKnown);
  EXPECT_NEAR(spread.entropy_interval->upper_bound, truth.entropy,
              SlackOf(truth.entropy));
  EXPECT_NEAR(spread.effective_count_interval.upper_bound,
              truth.effective_count, SlackOf(truth.effective_count));
  EXPECT_LT(spread.entropy_interval->lower_bound, truth.entropy - 0.1);
}

// A few rows as heavy as possible, and others of no weight.
TEST(SpreadTest, HeavyRowsReachTheLowerBounds) {
  Rows rows = {.logits = {2, 1.5, 1.5, 1.5, -40, -40, -40}};
  const Truth truth = TruthOf(rows.logits);
  const AttentionSpread spread = SpreadOf(rows.Scan(), kKnown);
  EXPECT_NEAR(spread.entropy_interval->lower_bound, truth.entropy,
              SlackOf(truth.entropy));
  EXPECT_NEAR(spread.effective_count_interval.lower_bound,
              truth.effective_count, SlackOf(truth.effective_count));
  EXPECT_GT(spread.entropy_interval->upper_bound, truth.entropy + 0.1);
}

// The best row lies in a list that was not visited. Its sum is estimated, or
// else lies within the error of the estimate.
TEST(SpreadTest, ARowThatWasMissedMayHaveItAll) {
  for (const float missed : {1.0f, 4.0f, 11.0f}) {
    for (const bool is_guessed : {true, false}) {
      Rows rows = {.logits = {0, -1, missed}};
      rows.logits.resize(1000, -6);
      const Truth truth = TruthOf(rows.logits);
      HeadScan scan = rows.Scan();
      scan.results_exact = false;
      if (!is_guessed) {
        // All but the row itself.
        const std::span<const float> all(rows.logits);
        scan.partition = PartitionOf(all.first(2));
        scan.unkept = PartitionOf(all.subspan(3));
        scan.partition.Merge(scan.unkept);
      }
      const double distance =
          truth.log_partition - *scan.partition.LogPartition();
      const PartitionError error = {MassMethod::kEstimate, -0.01,
                                    distance + 0.01};
      const AttentionSpread spread = SpreadOf(scan, error);
      EXPECT_LE(spread.entropy_interval->lower_bound,
                truth.entropy + SlackOf(truth.entropy))
          << missed << is_guessed;
      EXPECT_GE(spread.entropy_interval->upper_bound,
                truth.entropy - SlackOf(truth.entropy))
          << missed << is_guessed;
      EXPECT_LE(spread.effective_count_interval.lower_bound,
                truth.effective_count + SlackOf(truth.effective_count))
          << missed << is_guessed;
      EXPECT_GE(spread.effective_count_interval.upper_bound,
                truth.effective_count - SlackOf(truth.effective_count))
          << missed << is_guessed;
    }
  }
}

// The intervals hold for any rows, and for any point within the partition's
// interval.
TEST(SpreadTest, IntervalsHoldWhereThatOfThePartitionDoes) {
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<double> uniform;
  for (int trial = 0; trial < 20000; ++trial) {
    Rows rows;
    rows.logits.resize(3 + random() % 60);
    const auto sharpness =
        static_cast<float>(std::exp(6 * uniform(random) - 2));
    for (float& logit : rows.logits) logit = sharpness * normal(random);
    // Every third trial has many equal rows.
    if (trial % 3 == 0) {
      for (float& logit : rows.logits) {
        logit = std::round(logit / sharpness) * sharpness;
      }
    }
    std::partial_sort(rows.logits.begin(), rows.logits.begin() + 2,
                      rows.logits.end(), std::greater<>());
    rows.scored = 2 + random() % (rows.logits.size() - 2);
    HeadScan scan = rows.Scan();
    // The estimate takes the other rows for heavier or lighter than they are,
    // and for more or less alike.
    const double factor = std::exp(4 * uniform(random) - 2);
    HeadScan scored = rows.Scan();
    scored.partition =
        PartitionOf(std::span<const float>(rows.logits).first(rows.scored));
    scan.unkept.sum *= factor;
    scan.unkept.sum_gap *= factor * uniform(random);
    scan.unkept.sum_square *= factor * uniform(random);
    scan.partition = scored.partition;
    scan.partition.Merge(scan.unkept);
    const Truth truth = TruthOf(rows.logits);
    const double distance =
        truth.log_partition - *scan.partition.LogPartition();
    const PartitionError error = {
        MassMethod::kBound, std::min(0.0, distance) - uniform(random) / 4,
        std::max(0.0, distance) + uniform(random) / 4};
    const AttentionSpread spread = SpreadOf(scan, error);
    ASSERT_LE(spread.entropy_interval->lower_bound,
              truth.entropy + SlackOf(truth.entropy))
        << trial;
    ASSERT_GE(spread.entropy_interval->upper_bound,
              truth.entropy - SlackOf(truth.entropy))
        << trial;
    ASSERT_LE(spread.effective_count_interval.lower_bound,
              truth.effective_count + SlackOf(truth.effective_count))
        << trial;
    ASSERT_GE(spread.effective_count_interval.upper_bound,
              truth.effective_count - SlackOf(truth.effective_count))
        << trial;
    ASSERT_LE(spread.entropy_interval->lower_bound, *spread.entropy);
    ASSERT_GE(spread.entropy_interval->upper_bound, *spread.entropy);
    ASSERT_LE(spread.effective_count_interval.lower_bound,
              spread.effective_count);
    ASSERT_GE(spread.effective_count_interval.upper_bound,
              spread.effective_count);
  }
}

// What was guessed of them may be off by as much as they may hold.
TEST(SpreadTest, FarRowsHardlyWidenTheIntervals) {
  Rows rows = {.logits = {5, 4.5}};
  for (int i = 0; i < 400; ++i) rows.logits.push_back(2 - i * 0.005f);
  const std::vector<float> far(3000, -8);
  const SoftmaxPartition far_partition = PartitionOf(far);
  HeadScan scan = rows.Scan();
  scan.partition.Merge(far_partition);
  scan.unkept.Merge(far_partition);
  const PartitionError error = {MassMethod::kEstimate, -0.002, 0.002};
  const AttentionSpread wide = SpreadOf(scan, error);
  scan.far = {.count = 3000, .log_most = *far_partition.LogPartition() + 0.7};
  const AttentionSpread narrow = SpreadOf(scan, error);
  const auto width = [](const Interval& interval) {
    return interval.upper_bound - interval.lower_bound;
  };
  EXPECT_LT(width(*narrow.entropy_interval), width(*wide.entropy_interval) / 4);
  EXPECT_LT(width(narrow.effective_count_interval),
            width(wide.effective_count_interval) / 4);
  // With twice as much, or nothing, or all of it on one row.
  for (const std::vector<float>& others :
       {std::vector<float>(6000, -8), std::vector<float>(),
        std::vector<float>{-8 + std::log(3000.0f)}}) {
    std::vector<float> all = rows.logits;
    all.insert(all.end(), others.begin(), others.end());
    const Truth truth = TruthOf(all);
    EXPECT_GE(truth.entropy, narrow.entropy_interval->lower_bound);
    EXPECT_LE(truth.entropy, narrow.entropy_interval->upper_bound);
    EXPECT_GE(truth.effective_count,
              narrow.effective_count_interval.lower_bound);
    EXPECT_LE(truth.effective_count,
              narrow.effective_count_interval.upper_bound);
  }
  // If they held nothing, as if all were complete, it would be narrower still.
  scan.far = FarKeys();
  EXPECT_LT(width(*SpreadOf(scan, error).entropy_interval),
            width(*narrow.entropy_interval) / 2);
}

}  // namespace
}  // namespace attendant
