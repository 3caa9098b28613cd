#include "core/shortlist/mass/tail_sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <vector>

namespace attendant {
namespace {

// Two chunks of 64 and 40 keys, relative to different maxima.
class TailSampleTest : public ::testing::Test {
 protected:
  static constexpr int kKeys = 104;
  static constexpr int kBlocks = 7;

  TailSampleTest() {
    for (int i = 0; i < kKeys; ++i) {
      logits_.push_back(3 * std::sin(static_cast<float>(i)));
    }
    sample_.Start();
    AddChunk(0, 64, 3);
    AddChunk(64, 40, 5);
  }

  void AddChunk(int begin, int count, float max) {
    std::vector<float> exps;
    for (int i = begin; i < begin + count; ++i) {
      exps.push_back(std::exp(logits_[i] - max));
    }
    sample_.Add(exps.data(), count, max);
  }

  std::vector<double> BlockSums() const {
    std::vector<double> sums(kBlocks);
    for (std::size_t i = 0; i < kKeys; ++i) {
      sums[i / 16] += std::exp(double{logits_[i]});
    }
    return sums;
  }

  std::vector<float> logits_;
  TailSample sample_;
};

TEST_F(TailSampleTest, DrawsEveryBlockAsOftenAsItWeighs) {
  constexpr int kCount = 200;
  double total = 0;
  for (const double sum : BlockSums()) total += sum;
  EXPECT_NEAR(sample_.LogSum(), std::log(total), 1e-6);
  std::vector<TailSample::Draw> draws;
  sample_.DrawBlocks(kCount, /*seed=*/0, draws);
  ASSERT_EQ(draws.size(), kCount);
  std::map<std::int64_t, int> counts;
  double uniform_sum = 0;
  for (const TailSample::Draw& draw : draws) {
    ++counts[draw.block];
    const double share = BlockSums()[draw.block] / total;
    EXPECT_NEAR(draw.log_probability, std::log(share), 1e-6);
    uniform_sum += draw.uniform;
  }
  for (std::size_t b = 0; b < kBlocks; ++b) {
    EXPECT_NEAR(counts[static_cast<std::int64_t>(b)],
                kCount * BlockSums()[b] / total, 2.001);
  }
  // The mean of 200 uniform numbers deviates by .02.
  EXPECT_NEAR(uniform_sum / kCount, 0.5, 0.1);
}

TEST_F(TailSampleTest, WhatIsTakenOutIsNotDrawn) {
  std::vector<std::int32_t> positions(16);
  std::iota(positions.begin(), positions.end(), 16);
  sample_.Remove(positions, std::span(logits_).subspan(16, 16));
  double total = 0;
  for (std::size_t b = 0; b < kBlocks; ++b) {
    if (b != 1) total += BlockSums()[b];
  }
  // Floats leave an error of at most 2^-23 of a block for each key.
  EXPECT_NEAR(sample_.LogSum(), std::log(total), 1e-5);
  std::vector<TailSample::Draw> draws;
  sample_.DrawBlocks(500, /*seed=*/0, draws);
  for (const TailSample::Draw& draw : draws) EXPECT_NE(draw.block, 1);
}

// The keys in every other block get half of the draws, even if draws are as far
// apart as those blocks.
TEST(PeriodicTailSampleTest, DrawsDoNotKeepStepWithTheKeys) {
  constexpr int kCount = 500;
  TailSample sample;
  sample.Start();
  const std::vector<float> ones(2 * kCount * 16, 1);
  sample.Add(ones.data(), static_cast<std::int64_t>(ones.size()), 0);
  std::vector<TailSample::Draw> draws;
  sample.DrawBlocks(kCount, /*seed=*/0, draws);
  ASSERT_EQ(draws.size(), kCount);
  int even = 0;
  for (const TailSample::Draw& draw : draws) even += draw.block % 2 == 0;
  // The deviation is 11.
  EXPECT_NEAR(even, kCount / 2, 45);
}

// For example, the draws of segments that hold the same keys.
TEST(PeriodicTailSampleTest, DrawsOfSeedsAreIndependent) {
  constexpr int kCount = 500;
  TailSample sample;
  sample.Start();
  const std::vector<float> ones(kCount * 16, 1);
  sample.Add(ones.data(), static_cast<std::int64_t>(ones.size()), 0);
  std::vector<TailSample::Draw> draws[2];
  for (const std::uint64_t seed : {0, 1}) {
    sample.DrawBlocks(kCount, seed, draws[seed]);
    ASSERT_EQ(draws[seed].size(), kCount);
  }
  // Covariance of uniform numbers: the deviation of its mean is 1 / 12 sqrt(n).
  double product_sum = 0;
  for (std::size_t j = 0; j < kCount; ++j) {
    product_sum += (draws[0][j].uniform - 0.5) * (draws[1][j].uniform - 0.5);
  }
  EXPECT_NEAR(product_sum / kCount, 0, 4.0 / 12 / std::sqrt(kCount));
}

TEST(EmptyTailSampleTest, DrawsNothing) {
  TailSample sample;
  sample.Start();
  EXPECT_EQ(sample.LogSum(), -std::numeric_limits<double>::infinity());
  const std::vector<float> zeros(32);
  sample.Add(zeros.data(), 32, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(sample.LogSum(), -std::numeric_limits<double>::infinity());
  std::vector<TailSample::Draw> draws(3);
  sample.DrawBlocks(10, /*seed=*/0, draws);
  EXPECT_TRUE(draws.empty());
}

}  // namespace
}  // namespace attendant
