// Exponentials, and functions of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/kernels/kernels.h"
#include "tests/core/kernels/kernels_fixture.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

using ExpsTest = KernelsTest;

TEST_P(ExpsTest, TanhDotRowsAgreesWithDoubles) {
  for (const std::int64_t dim : kLengths) {
    for (const std::int64_t row_count : {0, 1, 3, 8}) {
      for (const std::int64_t offset : kOffsets) {
        for (const float deviation : {1e-6f, .1f, 1.f, 20.f}) {
          const auto query = Normal(dim + offset, deviation);
          const auto weight = Normal(dim + offset);
          const auto rows = Normal(row_count * dim + offset, deviation);
          std::vector<float> dots(static_cast<std::size_t>(row_count + 1), -7);
          kernels().TanhDotRows(query.data() + offset, weight.data() + offset,
                                rows.data() + offset, row_count, dim,
                                dots.data());
          for (std::int64_t r = 0; r < row_count; ++r) {
            const DoubleTanhDot naive =
                NaiveTanhDot(query.data() + offset, weight.data() + offset,
                             rows.data() + offset + r * dim, dim);
            EXPECT_NEAR(dots[r], naive.dot, TanhDotTolerance(naive, dim, 6))
                << "dim " << dim << " row " << r << " of " << row_count;
          }
          EXPECT_EQ(dots.back(), -7) << "wrote past the end";
        }
      }
    }
  }
}

TEST_P(ExpsTest, TanhHoldsItsErrorOverTheWholeRange) {
  // Rows of one component: the result is tanh itself.
  const float query = 0;
  const float weight = 1;
  std::vector<float> arguments = {0,     1e-45f, 1e-40f, 1.2e-38f, 1e-20f,
                                  43.5f, 43.6f,  1e4f,   1e20f,    3.4e38f};
  for (int i = 1; i <= 12000; ++i) {
    arguments.push_back(1e-8f * std::pow(1.002f, static_cast<float>(i)));
  }
  const std::size_t positive_count = arguments.size();
  for (std::size_t i = 0; i < positive_count; ++i) {
    arguments.push_back(-arguments[i]);
  }
  std::vector<float> tanhs(arguments.size());
  kernels().TanhDotRows(&query, &weight, arguments.data(),
                        static_cast<std::int64_t>(arguments.size()), 1,
                        tanhs.data());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const double exact = std::tanh(double{arguments[i]});
    EXPECT_NEAR(tanhs[i], exact,
                std::ldexp(std::abs(exact), -21) + 2 * std::ldexp(1.0, -149))
        << arguments[i];
    EXPECT_LE(std::abs(tanhs[i]), 1);
  }
}

TEST_P(ExpsTest, TanhDotOfExtremesIsTheSignedSumOfWeights) {
  for (const std::int64_t dim : kLengths) {
    const auto size = static_cast<std::size_t>(dim);
    const auto weight = Normal(dim);
    double norm = 0;
    for (const float w : weight) norm += std::abs(w);
    for (const float extreme : {1e4f, 3e38f}) {
      std::vector<float> query(size), row(size);
      for (std::size_t d = 0; d < size; ++d) {
        // The sum overflows for the greater value.
        query[d] = row[d] = std::copysign(extreme, weight[d]);
      }
      float dot = -7;
      kernels().TanhDotRows(query.data(), weight.data(), row.data(), 1, dim,
                            &dot);
      EXPECT_NEAR(dot, norm, static_cast<double>(dim + 1) * kEpsilon * norm);
      for (float& q : query) q = -q;
      kernels().TanhDotRows(query.data(), weight.data(), row.data(), 1, dim,
                            &dot);
      EXPECT_EQ(dot, 0) << "extremes that cancel";
    }
  }
}

TEST_P(ExpsTest, TanhDotStaysWithinTheNormOfItsWeights) {
  for (const std::int64_t dim : kLengths) {
    const auto weight = Normal(dim, 1e4f);
    const auto query = Normal(dim, 3);
    const auto rows = Normal(9 * dim, 3);
    double norm = 0;
    for (const float w : weight) norm += std::abs(w);
    std::vector<float> dots(9);
    kernels().TanhDotRows(query.data(), weight.data(), rows.data(), 9, dim,
                          dots.data());
    for (const float dot : dots) {
      EXPECT_LE(std::abs(dot),
                norm * (1 + static_cast<double>(dim + 1) * kEpsilon));
    }
  }
}

TEST_P(ExpsTest, TanhDotOfARowDoesNotDependOnItsPlace) {
  for (const std::int64_t dim : kLengths) {
    const auto query = Normal(dim);
    const auto weight = Normal(dim);
    const auto rows = Normal(21 * dim);
    std::vector<float> together(21);
    kernels().TanhDotRows(query.data(), weight.data(), rows.data(), 21, dim,
                          together.data());
    for (std::int64_t r = 0; r < 21; ++r) {
      float alone = 0;
      kernels().TanhDotRows(query.data(), weight.data(), rows.data() + r * dim,
                            1, dim, &alone);
      EXPECT_EQ(alone, together[r]) << "dim " << dim << " row " << r;
    }
  }
}

TEST_P(ExpsTest, ExpsAgreeWithTheLibrary) {
  for (const std::int64_t n : kLengths) {
    for (const std::int64_t offset : kOffsets) {
      for (const float deviation : {0.1f, 3.0f, 300.0f}) {
        auto logits = Normal(n + offset, deviation);
        double max = 1;
        for (const float logit : logits) max = std::max(max, double{logit});
        if (n > 2) logits[offset + 2] = -std::numeric_limits<float>::infinity();
        std::vector<double> exps(static_cast<std::size_t>(n + 1), -7);
        const double sum =
            kernels().Exps(logits.data() + offset, n, max, exps.data());
        EXPECT_EQ(exps.back(), -7) << "wrote past the end";
        double exact_sum = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const double gap = logits[i + offset] - max;
          const double exact = std::exp(gap);
          EXPECT_NEAR(exps[i], exact,
                      gap < -700 ? exact : std::ldexp(exact, -50))
              << "gap " << gap;
          exact_sum += exact;
        }
        // The terms' errors, and a rounding for each sum of two on either side.
        EXPECT_NEAR(
            sum, exact_sum,
            exact_sum * (std::ldexp(1.0, -50) +
                         std::ldexp(2.0 * static_cast<double>(n), -53)));
      }
    }
  }
}

TEST_P(ExpsTest, SumExpsAgreesWithDoubles) {
  for (const std::int64_t n : kLengths) {
    for (const std::int64_t offset : kOffsets) {
      for (const float deviation : {0.1f, 3.0f, 20.0f}) {
        auto logits = Normal(n + offset, deviation);
        float max = 1;
        for (const float logit : logits) max = std::max(max, logit);
        std::vector<float> exps(static_cast<std::size_t>(n + 1), -7);
        const ExpSums sums =
            kernels().SumExps(logits.data() + offset, n, max, exps.data());
        EXPECT_EQ(exps.back(), -7) << "wrote past the end";
        double sum = 0, sum_gap = 0, sum_square = 0;
        double sum_error = 0, gap_error = 0, square_error = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const double gap = double{logits[i + offset]} - max;
          const float e = exps[i];
          if (gap < -87.001) {
            EXPECT_EQ(e, 0);
            continue;
          }
          if (gap < -86.999) continue;  // either is right
          const double exact = std::exp(gap);
          const double error = exact * (std::ldexp(1.0, -21) - gap * kEpsilon);
          EXPECT_NEAR(e, exact, error) << "gap " << gap;
          sum += exact;
          sum_gap += exact * gap;
          sum_square += exact * exact;
          // Rounding of the doubles is far smaller; gaps round to floats.
          sum_error += error;
          gap_error += error * -gap + exact * -gap * kEpsilon;
          square_error += 2.001 * error * exact;
        }
        // A few roundings of the sums themselves.
        constexpr double kRounding = 9 * kEpsilon;
        sum_error += 8 * kEpsilon * 1.0001 * sum;
        gap_error += kRounding * 1.0001 * -sum_gap;
        square_error += kRounding * 1.0001 * sum_square;
        // The total of exps below the flush threshold: n e^-87.
        constexpr double kTiny = 1e-30;
        EXPECT_NEAR(sums.sum, sum, sum_error + kTiny);
        EXPECT_NEAR(sums.sum_gap, sum_gap, 1.001 * gap_error + kTiny);
        EXPECT_NEAR(sums.sum_square, sum_square, square_error + kTiny);
        const ExpSums without =
            kernels().SumExps(logits.data() + offset, n, max, nullptr);
        EXPECT_EQ(without.sum, sums.sum);
        EXPECT_EQ(without.sum_gap, sums.sum_gap);
      }
    }
  }
}

// Squares of terms far below the maximum underflow.
TEST_P(ExpsTest, SumsOfSmallTermsHold) {
  std::vector<float> logits(700);
  double sum = 0, sum_gap = 0, sum_square = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = -40 - static_cast<float>(i % 40);
    const double e = std::exp(double{logits[i]});
    sum += e;
    sum_gap += e * logits[i];
    sum_square += e * e;
  }
  const ExpSums sums = kernels().SumExps(logits.data(), 700, 0, nullptr);
  const double error = std::ldexp(1.0, -21) + (80 + 9) * 1.001 * kEpsilon;
  EXPECT_NEAR(sums.sum, sum, error * sum);
  EXPECT_NEAR(sums.sum_gap, sum_gap, -error * sum_gap);
  EXPECT_NEAR(sums.sum_square, sum_square,
              2 * error * sum_square + std::ldexp(1.0, -90));
}

TEST_P(ExpsTest, ExpOfZeroGapIsExactlyOne) {
  const std::vector<float> logits(19, 3.7f);
  std::vector<float> exps(19);
  const ExpSums sums = kernels().SumExps(logits.data(), 19, 3.7f, exps.data());
  EXPECT_EQ(sums.sum, 19);
  EXPECT_EQ(sums.sum_gap, 0);
  EXPECT_EQ(sums.sum_square, 19);
  EXPECT_THAT(exps, ElementsAreArray(std::vector<float>(19, 1)));
}

TEST_P(ExpsTest, ExpHoldsItsErrorOverTheWholeRange) {
  std::vector<float> logits;
  for (int i = 0; i <= 87 * 64; ++i) {
    logits.push_back(static_cast<float>(-i) / 64);  // exact, gaps too
  }
  std::vector<float> exps(logits.size());
  kernels().SumExps(logits.data(), static_cast<std::int64_t>(logits.size()), 0,
                    exps.data());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double exact = std::exp(double{logits[i]});
    EXPECT_NEAR(exps[i], exact,
                exact * (std::ldexp(1.0, -21) - logits[i] * kEpsilon))
        << logits[i];
  }
}

TEST_P(ExpsTest, GapsFarBelowCountAsZero) {
  constexpr float kHuge = 3e38f;
  const std::vector<float> logits = {kHuge, -kHuge, 0, kHuge - 1e35f};
  std::vector<float> exps(4);
  const ExpSums sums = kernels().SumExps(logits.data(), 4, kHuge, exps.data());
  EXPECT_THAT(exps, ElementsAre(1, 0, 0, 0));
  EXPECT_EQ(sums.sum, 1);
  EXPECT_EQ(sums.sum_gap, 0);
  EXPECT_EQ(sums.sum_square, 1);
}

// The log of the sum is continuous where v = 2 log n, so it does not matter on
// which side of it rounding leaves v. v has at most 4 roundings. log n + v / 2
// takes half of them, and the root, as both arguments are at most its square's,
// less than all; then come 2 more each, and that of the sum.
TEST_P(ExpsTest, NormalLogSumsAgreeWithDoubles) {
  for (const std::int64_t n : kLengths) {
    const auto scores = Normal(n, 10);
    const auto reaches = Normal(n);
    auto log_counts = Normal(n, 4);
    auto shares = Normal(n, 0.3f);
    auto variances = Normal(n);
    for (float& share : shares) share = std::abs(share);
    for (float& variance : variances) variance = std::abs(variance);
    const float unit = 0.7f;
    const float spread = 2.5f;
    std::vector<float> log_sums(static_cast<std::size_t>(n + 1), -7);
    kernels().NormalLogSums(
        {reaches.data(), log_counts.data(), shares.data(), variances.data()},
        scores.data(), unit, spread, n, log_sums.data());
    for (std::size_t l = 0; l < static_cast<std::size_t>(n); ++l) {
      if (log_counts[l] < 0) {
        EXPECT_EQ(log_sums[l], -std::numeric_limits<float>::infinity());
        continue;
      }
      const double mean = unit * (double{scores[l]} - reaches[l]);
      const double log_count = log_counts[l];
      const double v = mean * mean * shares[l] + double{spread} * variances[l];
      const double gain =
          v <= 2 * log_count ? log_count + v / 2 : std::sqrt(2 * v * log_count);
      // The mean's two roundings count twice in v.
      EXPECT_NEAR(log_sums[l], mean + gain,
                  12 * kEpsilon * (std::abs(mean) + log_count + v))
          << l << " of " << n;
    }
    EXPECT_EQ(log_sums.back(), -7) << "wrote past the end";
  }
}

// Powers of exps, including some whose squares would be denormal.
TEST_P(ExpsTest, SumPowersAgreesWithDoubles) {
  for (const std::int64_t n : kLengths) {
    std::vector<float> numbers = Normal(n, 10);
    for (float& number : numbers) number = std::exp(-std::abs(number));
    if (n > 2) {
      numbers[0] = 1;
      numbers[1] = 0;
      numbers[2] = std::exp(-87.0f);
    }
    double sums[kPowers];
    kernels().SumPowers(numbers.data(), n, sums);
    for (int k = 0; k < kPowers; ++k) {
      double want = 0;
      for (const float number : numbers) {
        want += std::pow(double{number}, std::exp2(k + 1));
      }
      const double roundings =
          std::exp2(k + 1) + static_cast<double>(n) / 8 + 8;
      // The omitted terms: each at most 2^-126, and its powers.
      EXPECT_NEAR(
          sums[k], want,
          roundings * 0x1p-24 * want + static_cast<double>(n) * 0x1p-126)
          << k << " of " << n;
    }
  }
}

// Both have at most 6 roundings, each at most of the terms' size. The sum adds
// those of its additions, one per list.
TEST_P(ExpsTest, NormalSquaresAgreeWithDoubles) {
  for (const std::int64_t n : kLengths) {
    const auto scores = Normal(n, 10);
    const auto reaches = Normal(n);
    auto log_counts = Normal(n, 4);
    auto log_sums = Normal(n, 30);
    auto weights = Normal(n);
    for (std::size_t l = 0; l < static_cast<std::size_t>(n); ++l) {
      weights[l] = std::abs(weights[l]);
      if (l % 3 == 1) weights[l] = 0;
      if (l % 6 == 1) {  // without keys
        log_counts[l] = -1;
        log_sums[l] = -std::numeric_limits<float>::infinity();
      }
    }
    const float unit = 0.7f;
    const float max = 40;
    std::vector<float> log_squares(static_cast<std::size_t>(n + 1), -7);
    const double sum = kernels().NormalSquares(
        {reaches.data(), log_counts.data(), nullptr, nullptr}, scores.data(),
        unit, log_sums.data(), weights.data(), max, n, log_squares.data());
    double want = 0;
    double size = 0;
    for (std::size_t l = 0; l < static_cast<std::size_t>(n); ++l) {
      const double log_sum = log_sums[l];
      if (std::isinf(log_sum)) {
        EXPECT_EQ(log_squares[l], log_sums[l]);
        continue;
      }
      const double mean = unit * (double{scores[l]} - reaches[l]);
      const double log_count = log_counts[l];
      const double variance = 2 * (log_sum - log_count - mean);
      const double terms =
          std::abs(mean) + std::abs(log_sum) + std::abs(log_count);
      EXPECT_NEAR(log_squares[l],
                  std::min(2 * log_sum, log_count + 2 * mean + 2 * variance),
                  6 * 4 * kEpsilon * terms)
          << l << " of " << n;
      want += weights[l] * (std::min(log_sum, mean + variance) - max);
      size += weights[l] * (2 * terms + max);
    }
    EXPECT_NEAR(sum, want, static_cast<double>(6 + n) * kEpsilon * size);
    EXPECT_EQ(log_squares.back(), -7) << "wrote past the end";
  }
}

TEST_P(ExpsTest, ExpsPerKeyAgreeWithDoubles) {
  for (const std::int64_t n : kLengths) {
    if (n == 0) continue;
    auto log_sums = Normal(n, 30);
    log_sums[n / 2] = -std::numeric_limits<float>::infinity();
    auto log_counts = Normal(n, 2);
    log_counts[0] = -1;  // none
    const float power = 0.8f;
    const float max = power * *std::ranges::max_element(log_sums);
    if (max == -std::numeric_limits<float>::infinity()) continue;
    std::vector<float> of_key(static_cast<std::size_t>(n + 1), -7);
    kernels().ExpsPerKey(log_sums.data(), log_counts.data(), n, power, max,
                         of_key.data());
    for (std::size_t l = 0; l < static_cast<std::size_t>(n); ++l) {
      const double log_count = std::max(0.0f, log_counts[l]);
      const double part = double{power} * log_sums[l];
      const double x = part - log_count - max;
      if (x < -87.001 || std::isinf(x)) {
        EXPECT_EQ(of_key[l], 0);
        continue;
      }
      if (x < -86.999) continue;  // either is right
      // The product and the subtracted sum round once; so do x and its part in
      // exp's error.
      const double roundings =
          std::abs(part) + log_count + std::abs(double{max}) + 2 * -x;
      const double error =
          std::exp(x) * (std::ldexp(1.0, -21) + 1.001 * roundings * kEpsilon);
      EXPECT_NEAR(of_key[l], std::exp(x), error) << l << " of " << n;
      EXPECT_LE(of_key[l], 1);
    }
    EXPECT_EQ(of_key.back(), -7) << "wrote past the end";
  }
}

TEST_P(ExpsTest, MinusInfinityHasNoExpAndExpsMayOverwriteLogits) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  std::vector<float> logits(21, kMinusInfinity);
  logits[3] = 2;
  logits[20] = 2;
  const ExpSums sums = kernels().SumExps(logits.data(), 21, 2, logits.data());
  std::vector<float> want(21, 0);
  want[3] = want[20] = 1;
  EXPECT_THAT(logits, ElementsAreArray(want));
  EXPECT_EQ(sums.sum, 2);
  EXPECT_EQ(sums.sum_gap, 0);
}

INSTANTIATE_TEST_SUITE_P(Levels, ExpsTest, EveryLevel(), NameOf);

}  // namespace
}  // namespace attendant
