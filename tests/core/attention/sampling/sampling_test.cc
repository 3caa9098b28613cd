#include "core/attention/sampling/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "core/attention/sampling/gumbel.h"
#include "tests/support/chi_square.h"
#include "tests/support/slate_twin.h"

namespace attendant {
namespace {

constexpr double kEpsilon = 0x1p-52;
constexpr int kDrawCount = 100000;

std::vector<double> Softmax(const std::vector<float>& logits) {
  const double max = *std::ranges::max_element(logits);
  std::vector<double> weights;
  for (const float logit : logits) weights.push_back(std::exp(logit - max));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

std::vector<std::uint64_t> Keys(std::size_t n) {
  std::vector<std::uint64_t> keys(n);
  std::iota(keys.begin(), keys.end(), 0);
  return keys;
}

Slate DrawWithReplacement(std::span<const float> logits, std::int64_t count,
                          std::uint64_t seed) {
  return SampleWithReplacement(logits, count, seed, {}).value();
}

Slate DrawWithoutReplacement(std::span<const float> logits,
                             std::span<const std::uint64_t> keys,
                             std::int64_t count, std::uint64_t seed) {
  return SampleWithoutReplacement(logits, keys, count, seed, {}).value();
}

std::vector<std::int64_t> Indices(const Slate& slate) {
  std::vector<std::int64_t> indices;
  for (const Draw& draw : slate.draws) indices.push_back(draw.index);
  return indices;
}

std::map<std::vector<std::int64_t>, double> Enumerate(
    const std::vector<float>& logits, std::size_t k) {
  return EnumerateSlates(Softmax(logits), k);
}

const std::vector<float> kLogits = {.3f, -1.2f, 2.f,  .9f, -.5f,
                                    0,   1.4f,  -2.f, .7f};

TEST(ChiSquareTest, PValuesAreThoseOfTheTable) {
  // Abramowitz, Stegun 1964, table 26.8.
  EXPECT_NEAR(ChiSquarePValue(10.828, 1), .001, 1e-6);
  EXPECT_NEAR(ChiSquarePValue(26.124, 8), .001, 1e-6);
  EXPECT_NEAR(ChiSquarePValue(3.841, 1), .05, 1e-4);
  EXPECT_NEAR(ChiSquarePValue(11.070, 5), .05, 1e-4);
}

TEST(SampleWithReplacementTest, FrequenciesAreWeights) {
  const Slate slate = DrawWithReplacement(kLogits, kDrawCount, 17);
  ASSERT_EQ(slate.draws.size(), kDrawCount);
  std::vector<double> counts(kLogits.size());
  for (const Draw& draw : slate.draws) {
    ++counts[draw.index];
  }
  EXPECT_GT(ChiSquarePValue(Softmax(kLogits), counts), kMinPValue);
}

TEST(SampleWithReplacementTest, DrawsAreIndependent) {
  // The probability of neighbouring draws is the product of their weights.
  const std::vector<float> logits = {0, 1, -.5f};
  const std::vector<double> weights = Softmax(logits);
  const Slate slate = DrawWithReplacement(logits, kDrawCount, 3);
  std::vector<double> counts(9);
  std::vector<double> want(9);
  for (std::size_t d = 0; d + 1 < slate.draws.size(); d += 2) {
    ++counts[3 * slate.draws[d].index + slate.draws[d + 1].index];
  }
  for (std::size_t i = 0; i < 9; ++i) want[i] = weights[i / 3] * weights[i % 3];
  EXPECT_GT(ChiSquarePValue(want, counts), kMinPValue);
}

TEST(SampleWithReplacementTest, DrawsAreIndependentAcrossSeeds) {
  const std::vector<double> weights = Softmax(kLogits);
  std::vector<double> counts(kLogits.size());
  for (int seed = 0; seed < kDrawCount; ++seed) {
    const Slate slate =
        DrawWithReplacement(kLogits, 1, static_cast<std::uint64_t>(seed));
    ++counts[slate.draws[0].index];
  }
  EXPECT_GT(ChiSquarePValue(weights, counts), kMinPValue);
}

TEST(SampleWithReplacementTest, ProbabilitiesAreTheDefinitions) {
  const std::vector<double> weights = Softmax(kLogits);
  const Slate slate = DrawWithReplacement(kLogits, 50, 1);
  double log_probability = 0;
  for (const Draw& draw : slate.draws) {
    const double want = std::log(weights[draw.index]);
    // A sum of 9, a quotient and two logs of numbers below 5.
    EXPECT_NEAR(draw.log_weight, want, 20 * kEpsilon);
    EXPECT_EQ(draw.log_inclusion_given_threshold, std::nullopt);
    log_probability += want;
  }
  EXPECT_NEAR(slate.log_probability, log_probability,
              50 * 20 * kEpsilon * (1 - log_probability));
  EXPECT_EQ(slate.kappa, std::nullopt);
}

TEST(SampleWithReplacementTest, SeedDecides) {
  const auto draw = [](std::uint64_t seed) {
    return Indices(DrawWithReplacement(kLogits, 100, seed));
  };
  EXPECT_EQ(draw(5), draw(5));
  EXPECT_NE(draw(5), draw(6));
}

TEST(SampleWithReplacementTest, ExtremesHold) {
  EXPECT_TRUE(DrawWithReplacement({}, 3, 1).draws.empty());
  EXPECT_TRUE(DrawWithReplacement(kLogits, 0, 1).draws.empty());
  const std::vector<float> one = {-1e4f};
  for (const Draw& draw : DrawWithReplacement(one, 3, 1).draws) {
    EXPECT_EQ(draw.index, 0);
    EXPECT_EQ(draw.log_weight, 0);
  }
  // Items without weight are never drawn, at any position.
  const std::vector<float> logits = {-1e4f, 1e4f, -1e4f, 1e4f, -1e4f};
  std::vector<double> counts(2);
  for (const Draw& draw : DrawWithReplacement(logits, 1000, 1).draws) {
    ASSERT_EQ(draw.index % 2, 1);
    EXPECT_NEAR(draw.log_weight, -std::numbers::ln2, 2 * kEpsilon);
    ++counts[draw.index / 2];
  }
  EXPECT_GT(ChiSquarePValue({.5, .5}, counts), kMinPValue);
}

TEST(SampleWithoutReplacementTest, FirstDrawsFrequenciesAreWeights) {
  std::vector<double> counts(kLogits.size());
  const std::vector<std::uint64_t> keys = Keys(kLogits.size());
  for (int seed = 0; seed < kDrawCount; ++seed) {
    const Slate slate = DrawWithoutReplacement(
        kLogits, keys, 1, static_cast<std::uint64_t>(seed));
    ++counts[slate.draws[0].index];
  }
  EXPECT_GT(ChiSquarePValue(Softmax(kLogits), counts), kMinPValue);
}

TEST(SampleWithoutReplacementTest, NoiseOfOneSeedIsIndependentAcrossKeys) {
  // The same seed for all slates, different keys each time.
  const std::vector<float> logits = {0, 1, -.5f};
  std::vector<double> counts(3);
  for (std::uint64_t key = 0; key < kDrawCount; ++key) {
    const std::vector<std::uint64_t> keys = {3 * key, 3 * key + 1, 3 * key + 2};
    ++counts[DrawWithoutReplacement(logits, keys, 1, 9).draws[0].index];
  }
  EXPECT_GT(ChiSquarePValue(Softmax(logits), counts), kMinPValue);
}

// Slates of k of n items, with the probability of every ordered slate.
class EnumerationTest : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(EnumerationTest, SlatesHaveTheirProbabilities) {
  const auto n = static_cast<std::size_t>(GetParam().first);
  const auto k = static_cast<std::size_t>(GetParam().second);
  // Milder than kLogits, so that each of about a hundred slates occurs.
  std::vector<float> logits(kLogits.begin(),
                            kLogits.begin() + GetParam().first);
  for (float& logit : logits) logit *= .4f;
  const std::map<std::vector<std::int64_t>, double> slates =
      Enumerate(logits, k);
  std::map<std::vector<std::int64_t>, double> frequencies;
  const std::vector<std::uint64_t> keys = Keys(n);
  for (int seed = 0; seed < kDrawCount; ++seed) {
    const Slate slate = DrawWithoutReplacement(
        logits, keys, GetParam().second, static_cast<std::uint64_t>(seed));
    const std::vector<std::int64_t> indices = Indices(slate);
    ++frequencies[indices];
    const auto found = slates.find(indices);
    ASSERT_NE(found, slates.end());
    // k sums of n terms, quotients and logs on either side, of logs below 20.
    const double tolerance = static_cast<double>(8 * k * n) * kEpsilon;
    ASSERT_NEAR(slate.log_probability, std::log(found->second), tolerance);
    // Sums each draw's own log probability into that of the slate.
    double log_probability = 0;
    for (const Draw& draw : slate.draws) log_probability += draw.log_weight;
    ASSERT_NEAR(log_probability, slate.log_probability, tolerance);
    ASSERT_EQ(slate.kappa.has_value(), k < n);
  }
  std::vector<double> probabilities;
  std::vector<double> counts;
  for (const auto& [indices, probability] : slates) {
    probabilities.push_back(probability);
    counts.push_back(frequencies[indices]);
  }
  EXPECT_NEAR(std::accumulate(probabilities.begin(), probabilities.end(), 0.0),
              1, static_cast<double>(probabilities.size() * n) * kEpsilon);
  EXPECT_GT(ChiSquarePValue(probabilities, counts), kMinPValue);
}

INSTANTIATE_TEST_SUITE_P(Slates, EnumerationTest,
                         testing::Values(std::pair(2, 2), std::pair(3, 2),
                                         std::pair(3, 3), std::pair(5, 2),
                                         std::pair(5, 3), std::pair(8, 2),
                                         std::pair(8, 3)));

TEST(SampleWithoutReplacementTest, EachDrawsWeightIsConditional) {
  const std::vector<double> weights = Softmax(kLogits);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Slate slate =
        DrawWithoutReplacement(kLogits, Keys(kLogits.size()), 9, seed);
    ASSERT_EQ(slate.draws.size(), 9);
    std::vector<bool> drawn(9);
    for (const Draw& draw : slate.draws) {
      double left = 0;
      for (std::size_t i = 0; i < 9; ++i) left += drawn[i] ? 0 : weights[i];
      const auto index = static_cast<std::size_t>(draw.index);
      EXPECT_FALSE(drawn[index]);
      EXPECT_NEAR(draw.log_weight, std::log(weights[index] / left),
                  8 * 9 * kEpsilon);
      EXPECT_EQ(draw.log_inclusion_given_threshold, std::nullopt);
      drawn[index] = true;
    }
    EXPECT_EQ(slate.kappa, std::nullopt);
  }
}

TEST(SampleWithoutReplacementTest, InclusionIsItsDefinition) {
  const std::vector<double> weights = Softmax(kLogits);
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Slate slate =
        DrawWithoutReplacement(kLogits, Keys(kLogits.size()), 4, seed);
    ASSERT_TRUE(slate.kappa.has_value());
    for (const Draw& draw : slate.draws) {
      ASSERT_TRUE(draw.log_inclusion_given_threshold.has_value());
      const double log_weight = std::log(weights[draw.index]);
      const double want = 1 - std::exp(-std::exp(log_weight - *slate.kappa));
      // Cancellation leaves the definition an absolute error of epsilon;
      // exponents are below 16, so exp multiplies their rounding by up to that
      // factor.
      EXPECT_NEAR(std::exp(*draw.log_inclusion_given_threshold), want,
                  64 * kEpsilon);
    }
  }
}

TEST(SampleWithoutReplacementTest, KappaIsThePerturbedWeightOfTheNextDraw) {
  // One more draw lowers kappa: the item just below it is drawn and lies above
  // the new kappa.
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    double before = std::numeric_limits<double>::infinity();
    for (int count = 0; count < 9; ++count) {
      const Slate slate =
          DrawWithoutReplacement(kLogits, Keys(kLogits.size()), count, seed);
      ASSERT_TRUE(slate.kappa.has_value());
      EXPECT_LT(*slate.kappa, before);
      before = *slate.kappa;
    }
  }
}

TEST(SampleWithoutReplacementTest, GreatestPerturbedWeightIsStandardGumbel) {
  // Without draws kappa is the maximum noise, a standard Gumbel variable
  // because the weights sum to 1: exp(-exp(-kappa)) is uniform.
  std::vector<double> counts(20);
  for (std::uint64_t seed = 0; seed < kDrawCount; ++seed) {
    const Slate slate =
        DrawWithoutReplacement(kLogits, Keys(kLogits.size()), 0, seed);
    const double u = std::exp(-std::exp(-*slate.kappa));
    ++counts[static_cast<std::size_t>(20 * u)];
  }
  EXPECT_GT(ChiSquarePValue(std::vector<double>(20, .05), counts), kMinPValue);
}

TEST(SampleWithoutReplacementTest, EstimatesByInclusionAreUnbiased) {
  // Horvitz-Thompson estimate of the sum of f = weight x gain over all items,
  // from the slate alone (Kool et al. 2019, eq. 9).
  const std::vector<double> gains = {3, 1, 2, 5, 7, 4, 1, 9, 2};
  const std::vector<double> weights = Softmax(kLogits);
  double want = 0;
  for (std::size_t i = 0; i < 9; ++i) want += weights[i] * gains[i];
  for (const int count : {1, 2, 3, 8}) {
    double sum = 0;
    double square_sum = 0;
    for (std::uint64_t seed = 0; seed < kDrawCount; ++seed) {
      const Slate slate = DrawWithoutReplacement(kLogits, Keys(9), count, seed);
      double estimate = 0;
      for (const Draw& draw : slate.draws) {
        const auto i = static_cast<std::size_t>(draw.index);
        estimate += weights[i] * gains[i] /
                    std::exp(draw.log_inclusion_given_threshold.value());
      }
      sum += estimate;
      square_sum += estimate * estimate;
    }
    const double mean = sum / kDrawCount;
    const double deviation = std::sqrt(square_sum / kDrawCount - mean * mean);
    // Four standard errors of a mean: 99.994 % of seeds pass.
    EXPECT_NEAR(mean, want, 4 * deviation / std::sqrt(kDrawCount))
        << count << " draws";
    // Tight enough to detect a bias of a twentieth.
    EXPECT_LT(4 * deviation / std::sqrt(kDrawCount), want / 20);
  }
}

TEST(SampleWithoutReplacementTest, OrderOfItemsDoesNotMatter) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> logits(200);
  std::vector<std::uint64_t> keys(200);
  for (std::size_t i = 0; i < 200; ++i) {
    logits[i] = normal(random);
    keys[i] = i * 0x9e3779b97f4a7c15u;
  }
  std::vector<std::int64_t> order(200);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random);
  std::vector<float> shuffled_logits;
  std::vector<std::uint64_t> shuffled_keys;
  for (const std::int64_t i : order) {
    shuffled_logits.push_back(logits[i]);
    shuffled_keys.push_back(keys[i]);
  }
  const Slate slate = DrawWithoutReplacement(logits, keys, 50, 8);
  const Slate shuffled =
      DrawWithoutReplacement(shuffled_logits, shuffled_keys, 50, 8);
  ASSERT_EQ(shuffled.draws.size(), slate.draws.size());
  for (std::size_t d = 0; d < slate.draws.size(); ++d) {
    EXPECT_EQ(order[shuffled.draws[d].index], slate.draws[d].index);
    // Sums of 200 terms in another order, and 50 more additions.
    EXPECT_NEAR(shuffled.draws[d].log_weight, slate.draws[d].log_weight,
                (200 + 4 * 50) * kEpsilon);
    EXPECT_EQ(shuffled.draws[d].log_inclusion_given_threshold,
              slate.draws[d].log_inclusion_given_threshold);
  }
  EXPECT_NEAR(*shuffled.kappa, *slate.kappa, (200 + 4 * 50) * kEpsilon);
}

TEST(SampleWithoutReplacementTest, SmallerCountIsPrefix) {
  const std::vector<std::uint64_t> keys = Keys(kLogits.size());
  const std::vector<std::int64_t> all =
      Indices(DrawWithoutReplacement(kLogits, keys, 100, 12));
  ASSERT_EQ(all.size(), 9);
  for (std::size_t count = 0; count < 9; ++count) {
    const Slate slate = DrawWithoutReplacement(
        kLogits, keys, static_cast<std::int64_t>(count), 12);
    EXPECT_EQ(Indices(slate),
              std::vector(all.begin(),
                          all.begin() + static_cast<std::ptrdiff_t>(count)));
  }
}

TEST(SampleWithoutReplacementTest, ManyItemsGiveThePrefixOfAllDrawn) {
  // A few draws leave most noise uncomputed; drawing everything computes it
  // all.
  constexpr std::size_t kItemCount = 3000;
  const std::vector<std::uint64_t> keys = Keys(kItemCount);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const float deviation : {0.f, 1.f, 30.f, 3000.f}) {
    std::vector<float> logits(kItemCount);
    for (float& logit : logits) logit = deviation * normal(random);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const std::vector<std::int64_t> all =
          Indices(DrawWithoutReplacement(logits, keys, kItemCount, seed));
      for (const std::ptrdiff_t count : {1, 10, 200}) {
        EXPECT_EQ(Indices(DrawWithoutReplacement(logits, keys, count, seed)),
                  std::vector(all.begin(), all.begin() + count));
      }
    }
  }
}

TEST(SampleWithoutReplacementTest, NoiseOfAnItemIsItsOwn) {
  // Removing an item keeps the order of the others.
  const std::vector<std::uint64_t> keys = Keys(kLogits.size());
  const Slate all = DrawWithoutReplacement(kLogits, keys, 9, 30);
  for (std::int64_t removed = 0; removed < 9; ++removed) {
    std::vector<float> logits = kLogits;
    std::vector<std::uint64_t> left_keys = keys;
    logits.erase(logits.begin() + removed);
    left_keys.erase(left_keys.begin() + removed);
    std::vector<std::int64_t> want;
    for (const std::int64_t index : Indices(all)) {
      if (index != removed) want.push_back(index);
    }
    std::vector<std::int64_t> got;
    for (const std::int64_t index :
         Indices(DrawWithoutReplacement(logits, left_keys, 9, 30))) {
      got.push_back(index < removed ? index : index + 1);
    }
    EXPECT_EQ(got, want) << "without item " << removed;
  }
}

TEST(SampleWithoutReplacementTest, AllEqualIsUniform) {
  const std::vector<float> logits(4, 1e4f);
  std::vector<double> counts(4);
  for (std::uint64_t seed = 0; seed < kDrawCount; ++seed) {
    const Slate slate = DrawWithoutReplacement(logits, Keys(4), 2, seed);
    EXPECT_NEAR(slate.draws[0].log_weight, -std::log(4.0), 8 * kEpsilon);
    EXPECT_NEAR(slate.draws[1].log_weight, -std::log(3.0), 8 * kEpsilon);
    ++counts[slate.draws[1].index];
  }
  EXPECT_GT(ChiSquarePValue(std::vector<double>(4, .25), counts), kMinPValue);
}

TEST(SampleWithoutReplacementTest, ExtremesHold) {
  EXPECT_TRUE(DrawWithoutReplacement({}, {}, 3, 1).draws.empty());
  const std::vector<float> one = {1e4f};
  const Slate single = DrawWithoutReplacement(one, Keys(1), 3, 1);
  ASSERT_EQ(single.draws.size(), 1);
  EXPECT_EQ(single.draws[0].log_weight, 0);
  EXPECT_EQ(single.log_probability, 0);
  EXPECT_EQ(single.kappa, std::nullopt);

  const std::vector<float> logits = {-1e4f, 1e4f, -1e4f, -1e4f, 1e4f};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Slate slate = DrawWithoutReplacement(logits, Keys(5), 4, seed);
    ASSERT_EQ(slate.draws.size(), 4);
    // The two heavy items come first. The remaining weights must then be summed
    // again: subtracting the heavy ones from the partition would leave 0 or
    // NaN.
    EXPECT_EQ(slate.draws[0].index + slate.draws[1].index, 5);
    const double want[] = {-std::log(2.0), 0, -std::log(3.0), -std::log(2.0)};
    for (std::size_t d = 0; d < 4; ++d) {
      // Rounded at a size of 2e4 before the subtraction.
      EXPECT_NEAR(slate.draws[d].log_weight, want[d], 8 * 2e4 * kEpsilon);
    }
    ASSERT_TRUE(slate.kappa.has_value());
    // One item is almost certain to be drawn, and exp(2e4) overflows a double.
    EXPECT_EQ(slate.draws[0].log_inclusion_given_threshold, 0);
    EXPECT_TRUE(std::isfinite(*slate.draws[3].log_inclusion_given_threshold));
  }
}

TEST(SampleWithoutReplacementTest, SmallInclusionKeepsItsDigits) {
  constexpr std::size_t kItemCount = 50000;
  const std::vector<float> logits(kItemCount, 2);
  const Slate slate = DrawWithoutReplacement(logits, Keys(kItemCount), 3, 21);
  const double log_weight = -std::log(static_cast<double>(kItemCount));
  for (const Draw& draw : slate.draws) {
    const double rate = std::exp(log_weight - *slate.kappa);
    ASSERT_LT(rate, 1e-3);
    // 1 - exp(-rate) by its series, whose next term is below 2^-52 of it;
    // cancellation would leave an error of 2^-53 / rate.
    const double want =
        rate *
        (1 - rate / 2 * (1 - rate / 3 * (1 - rate / 4 * (1 - rate / 5))));
    // kappa and the log weight are about 11 in size, and each is rounded there.
    // The partition of equal logits is a sum of ones, which is exact.
    EXPECT_NEAR(*draw.log_inclusion_given_threshold, std::log(want),
                64 * kEpsilon);
    EXPECT_LT(64 * kEpsilon, 0x1p-53 / rate);
  }
}

// Gives up at a given look and expects no further look.
class GivesUp final : public Yielder {
 public:
  explicit GivesUp(int look) : looks_left_(look) {
    set_yield_time(SteadyTime::min());
    interrupt_.cancelled = &cancelled_;
    interrupt_.yielder = this;
  }
  void Yield() override { cancelled_ = --looks_left_ <= 0; }
  const Interrupt& interrupt() const { return interrupt_; }
  int looks_left() const { return looks_left_; }

 private:
  int looks_left_;
  std::atomic<bool> cancelled_ = false;
  Interrupt interrupt_;
};

TEST(SampleTest, StopsBetweenSomeThousandItems) {
  constexpr std::size_t kItemCount = 5 * 4096;
  const std::vector<float> logits(kItemCount);
  const std::vector<std::uint64_t> keys = Keys(kItemCount);
  // Sums take one pass; draws without replacement take another for the noise.
  for (const int look : {1, 2, 5}) {
    GivesUp gives_up(look);
    EXPECT_EQ(SampleWithReplacement(logits, 3, 1, gives_up.interrupt())
                  .status()
                  .code(),
              absl::StatusCode::kCancelled);
    EXPECT_EQ(gives_up.looks_left(), 0);
  }
  for (const int look : {1, 5, 6, 10}) {
    GivesUp gives_up(look);
    EXPECT_EQ(SampleWithoutReplacement(logits, keys, 3, 1, gives_up.interrupt())
                  .status()
                  .code(),
              absl::StatusCode::kCancelled);
    EXPECT_EQ(gives_up.looks_left(), 0);
  }
}

TEST(SampleWithoutReplacementTest, WhatIsLeftMayBeFarBelowWhatWasDrawn) {
  const float logits[] = {0, -740, -740.5};
  const std::uint64_t keys[] = {1, 2, 3};
  const auto slate = SampleWithoutReplacement(logits, keys, 2, 7, Interrupt());
  ASSERT_TRUE(slate.ok());
  ASSERT_EQ(slate->draws[0].index, 0);
  const double of = slate->draws[1].index == 1 ? 0 : -.5;
  EXPECT_NEAR(slate->draws[1].log_weight, of - std::log(1 + std::exp(-.5)),
              1e-9);
}

TEST(GumbelTest, IsFiniteOfAnyBits) {
  EXPECT_TRUE(std::isfinite(GumbelFrom(0)));
  EXPECT_TRUE(std::isfinite(GumbelFrom(~std::uint64_t{0})));
}

}  // namespace
}  // namespace attendant
