#include "core/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/attention/sampling/gumbel.h"

namespace attendant {
namespace {

TEST(SplitMixBitsTest, AreThoseOfThePublishedGenerator) {
  // Outputs of the authors' program for the seeds 0 and 1234567.
  EXPECT_EQ(SplitMixBits(0, 0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(SplitMixBits(0, 1), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(SplitMixBits(1234567, 0), 6457827717110365317u);
  EXPECT_EQ(SplitMixBits(1234567, 1), 3203168211198807973u);
}

TEST(UniformFromTest, IsInTheHalfOpenUnitInterval) {
  EXPECT_EQ(UniformFrom(0), 0);
  EXPECT_EQ(UniformFrom(std::uint64_t{1} << 63), 0.5);
  EXPECT_EQ(UniformFrom(~std::uint64_t{0}), 1 - 0x1p-53);
}

TEST(RandomBitsTest, DependOnSeedAndCounter) {
  EXPECT_EQ(RandomBits(1, 2), RandomBits(1, 2));
  EXPECT_NE(RandomBits(1, 2), RandomBits(2, 1));
  EXPECT_NE(RandomBits(1, 2), RandomBits(1, 3));
}

std::vector<float> Filled(NormalUse use, std::uint64_t seed,
                          std::uint64_t first, std::size_t count) {
  std::vector<float> normals(count);
  FillNormals(use, seed, first, normals);
  return normals;
}

// The mean product of a[i] and b[i].
double Correlation(std::span<const float> a, std::span<const float> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0) /
         static_cast<double>(a.size());
}

TEST(FillNormalsTest, HasMeanZeroAndVarianceOneAndNoCorrelation) {
  constexpr std::size_t kCount = 100001;
  const std::vector<float> normals =
      Filled(NormalUse::kHashDirections, 5, 0, kCount);
  const double deviation = 1 / std::sqrt(kCount);
  // Five standard errors: 1 / sqrt(n) and sqrt(2 / n).
  EXPECT_NEAR(std::accumulate(normals.begin(), normals.end(), 0.0) / kCount, 0,
              5 * deviation);
  EXPECT_NEAR(Correlation(normals, normals), 1, 5 * std::sqrt(2.0) * deviation);
  // Correlation within a pair, and between one pair and the next.
  const std::span<const float> all(normals);
  for (const std::size_t lag : {1u, 2u}) {
    EXPECT_NEAR(Correlation(all.first(kCount - lag), all.last(kCount - lag)), 0,
                5 * deviation);
  }
}

TEST(FillNormalsTest, WhereItBeginsDoesNotMatter) {
  const auto all = Filled(NormalUse::kRowReduction, 3, 0, 9);
  const auto later = Filled(NormalUse::kRowReduction, 3, 4, 5);
  EXPECT_TRUE(std::equal(later.begin(), later.end(), all.begin() + 4));
}

TEST(FillNormalsTest, UsesOfOneSeedAreIndependent) {
  constexpr std::size_t kCount = 100000;
  const double bound = 5 / std::sqrt(kCount);
  for (const std::uint64_t seed : {0u, 1u, 2u}) {
    std::vector<std::vector<float>> drawn;
    for (const NormalUse use :
         {NormalUse::kHashDirections, NormalUse::kIndexDirections,
          NormalUse::kRowReduction}) {
      drawn.push_back(Filled(use, seed, 0, kCount));
      EXPECT_NEAR(Correlation(drawn.back(), Filled(use, seed + 1, 0, kCount)),
                  0, bound);
    }
    // The noise that draws with that seed and equal counters add to log
    // weights: mean gamma and variance pi^2 / 6, here standardised to 0 and 1.
    std::vector<float> noise;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      noise.push_back(static_cast<float>(
          (GumbelFrom(RandomBits(seed, i)) - std::numbers::egamma) *
          std::sqrt(6.0) / std::numbers::pi));
    }
    drawn.push_back(std::move(noise));
    for (std::size_t a = 0; a < drawn.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        EXPECT_NEAR(Correlation(drawn[a], drawn[b]), 0, bound)
            << a << " and " << b << " of seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace attendant
