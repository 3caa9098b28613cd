#include "core/kernels/kernels.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// 2^-24: the relative error of one rounding to float.
constexpr double kEpsilon = 5.9604644775390625e-8;

// None, one, around the vector widths (4, 8, 16) and their multiples, odd.
const std::int64_t kLengths[] = {0,  1,  2,  3,  7,  8,  9,   15,  16, 17,
                                 23, 31, 32, 33, 48, 63, 100, 128, 129};
// Longer than a block of sums, at one level or all.
const std::int64_t kLongLengths[] = {511, 512, 513, 1025, 2065, 8192};
// Bytes from alignment, in floats.
const std::int64_t kOffsets[] = {0, 1, 3};

class KernelsTest : public ::testing::TestWithParam<KernelLevel> {
 protected:
  void SetUp() override {
    if (!IsSupported(GetParam())) GTEST_SKIP() << "not on this processor";
  }

  const Kernels& kernels() const { return KernelsFor(GetParam()); }

  std::vector<float> Normal(std::int64_t size, float deviation = 1) {
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> floats;
    // Kernels step over what they are given, which must not be null.
    floats.reserve(static_cast<std::size_t>(size) + 1);
    floats.resize(static_cast<std::size_t>(size));
    for (float& f : floats) f = normal(random_);
    return floats;
  }

  std::mt19937 random_{20240607};
};

struct DoubleDot {
  double dot = 0;
  double magnitude = 0;  // of the terms: at most |q| |k|
};

DoubleDot NaiveDot(const float* a, const float* b, std::int64_t dim) {
  DoubleDot result;
  for (std::int64_t d = 0; d < dim; ++d) {
    result.dot += double{a[d]} * b[d];
    result.magnitude += std::abs(double{a[d]} * b[d]);
  }
  return result;
}

// Each term passes at most dim + 1 roundings, whatever the order.
double DotTolerance(const DoubleDot& naive, std::int64_t dim) {
  return static_cast<double>(dim + 1) * kEpsilon * naive.magnitude * 1.0001;
}

struct DoubleTanhDot {
  double dot = 0;
  double magnitude = 0;  // of the terms: at most the L1 norm of the weights
};

DoubleTanhDot NaiveTanhDot(const float* query, const float* output_weight,
                           const float* row, std::int64_t dim) {
  DoubleTanhDot result;
  for (std::int64_t d = 0; d < dim; ++d) {
    const double term =
        output_weight[d] * std::tanh(double{query[d]} + double{row[d]});
    result.dot += term;
    result.magnitude += std::abs(term);
  }
  return result;
}

// Each tanh has its relative error, each term passes at most dim + 1 roundings,
// whatever the order, and each tanh, product and sum may round to a multiple of
// the least denormal, a tanh's then multiplied by its weight.
double TanhDotTolerance(const DoubleTanhDot& naive, std::int64_t dim,
                        double greatest_weight) {
  const auto count = static_cast<double>(dim + 1);
  return (std::ldexp(1.0, -21) + count * kEpsilon) * naive.magnitude * 1.0001 +
         count * (2 + greatest_weight) * std::ldexp(1.0, -149);
}

TEST_P(KernelsTest, DotRowsAgreesWithDoubles) {
  for (const std::int64_t dim : kLengths) {
    for (const std::int64_t row_count : {0, 1, 3, 8, 9, 14}) {
      for (const std::int64_t offset : kOffsets) {
        const auto query = Normal(dim + offset);
        const auto rows = Normal(row_count * dim + offset);
        std::vector<float> dots(static_cast<std::size_t>(row_count + 1), -7);
        kernels().DotRows(query.data() + offset, rows.data() + offset,
                          row_count, dim, dots.data());
        for (std::int64_t r = 0; r < row_count; ++r) {
          const DoubleDot naive = NaiveDot(query.data() + offset,
                                           rows.data() + offset + r * dim, dim);
          EXPECT_NEAR(dots[static_cast<std::size_t>(r)], naive.dot,
                      DotTolerance(naive, dim))
              << "dim " << dim << " row " << r << " of " << row_count;
        }
        EXPECT_EQ(dots.back(), -7) << "wrote past the end";
      }
    }
  }
}

TEST_P(KernelsTest, LongSumsKeepTheirDigits) {
  // The roundings of kernels.h, which do not grow with dim as one sum's would.
  const std::int64_t width = GetParam() == KernelLevel::kAvx512 ? 16 : 8;
  for (const std::int64_t dim : kLongLengths) {
    const std::int64_t blocks = (dim + 64 * width - 1) / (64 * width);
    const std::int64_t roundings =
        GetParam() == KernelLevel::kScalar
            ? 1
            : (std::min(dim, 64 * width) + width - 1) / width +
                  (width == 16 ? 4 : 3) + blocks;
    const auto query = Normal(dim);
    const auto rows = Normal(14 * dim);
    const std::vector<float> zeros(static_cast<std::size_t>(dim));
    std::vector<float> dots(15, -7);
    std::vector<float> tanh_dots(15, -7);
    kernels().DotRows(query.data(), rows.data(), 14, dim, dots.data());
    kernels().TanhDotRows(zeros.data(), query.data(), rows.data(), 14, dim,
                          tanh_dots.data());
    for (std::int64_t r = 0; r < 14; ++r) {
      const float* row = rows.data() + r * dim;
      const auto count = static_cast<double>(roundings) * 1.001 * kEpsilon;
      const DoubleDot naive = NaiveDot(query.data(), row, dim);
      EXPECT_NEAR(dots[static_cast<std::size_t>(r)], naive.dot,
                  count * naive.magnitude)
          << "dim " << dim << " row " << r;
      const DoubleTanhDot tanh_naive =
          NaiveTanhDot(zeros.data(), query.data(), row, dim);
      EXPECT_NEAR(tanh_dots[static_cast<std::size_t>(r)], tanh_naive.dot,
                  (count + std::ldexp(1.0, -21)) * tanh_naive.magnitude)
          << "dim " << dim << " row " << r;
      float alone = 0;
      kernels().DotRows(query.data(), row, 1, dim, &alone);
      EXPECT_EQ(alone, dots[static_cast<std::size_t>(r)]);
    }
    EXPECT_EQ(dots.back(), -7) << "wrote past the end";
    EXPECT_EQ(tanh_dots.back(), -7) << "wrote past the end";
    std::vector<float> multi(5 * 14);
    const auto queries = Normal(5 * dim);
    kernels().DotRowsMulti(queries.data(), 5, rows.data(), 14, dim,
                           multi.data());
    for (std::int64_t q = 0; q < 5; ++q) {
      kernels().DotRows(queries.data() + q * dim, rows.data(), 14, dim,
                        dots.data());
      EXPECT_EQ(
          std::memcmp(dots.data(), multi.data() + q * 14, 14 * sizeof(float)),
          0);
    }
  }
}

TEST_P(KernelsTest, DotRowsMultiGivesTheBytesOfDotRows) {
  for (const std::int64_t dim : kLengths) {
    for (const std::int64_t row_count : {1, 2, 5, 8, 15, 17}) {
      for (const std::int64_t query_count : {0, 1, 2, 3, 4, 7}) {
        const auto queries = Normal(query_count * dim);
        const auto rows = Normal(row_count * dim);
        std::vector<float> multi(
            static_cast<std::size_t>(query_count * row_count + 1), -7);
        kernels().DotRowsMulti(queries.data(), query_count, rows.data(),
                               row_count, dim, multi.data());
        EXPECT_EQ(multi.back(), -7) << "wrote past the end";
        std::vector<float> single(static_cast<std::size_t>(row_count));
        for (std::int64_t q = 0; q < query_count; ++q) {
          kernels().DotRows(queries.data() + q * dim, rows.data(), row_count,
                            dim, single.data());
          EXPECT_EQ(std::memcmp(single.data(), multi.data() + q * row_count,
                                single.size() * sizeof(float)),
                    0)
              << "dim " << dim << " rows " << row_count << " query " << q;
        }
      }
    }
  }
}

TEST_P(KernelsTest, ManyQueriesAndRowsGiveTheBytesOfDotRows) {
  for (const std::int64_t dim : {31, 32, 33, 100, 128, 255, 256, 257}) {
    const auto queries = Normal(33 * dim);
    auto rows = Normal(100 * dim);
    // Sums of -0, and no number.
    std::fill_n(rows.begin(), 2 * dim, -0.0f);
    rows[static_cast<std::size_t>(3 * dim)] =
        std::numeric_limits<float>::quiet_NaN();
    std::vector<float> single(100);
    std::vector<float> multi;
    for (const std::int64_t row_count : {31, 32, 33, 64, 100}) {
      for (const std::int64_t query_count : {8, 11, 12, 13, 20, 33}) {
        multi.assign(static_cast<std::size_t>(query_count * row_count + 1), -7);
        kernels().DotRowsMulti(queries.data(), query_count, rows.data(),
                               row_count, dim, multi.data());
        EXPECT_EQ(multi.back(), -7) << "wrote past the end";
        for (std::int64_t q = 0; q < query_count; ++q) {
          kernels().DotRows(queries.data() + q * dim, rows.data(), row_count,
                            dim, single.data());
          EXPECT_EQ(
              std::memcmp(single.data(), multi.data() + q * row_count,
                          static_cast<std::size_t>(row_count) * sizeof(float)),
              0)
              << "dim " << dim << " rows " << row_count << " query " << q;
        }
      }
    }
  }
}

TEST_P(KernelsTest, DotOfARowDoesNotDependOnItsPlace) {
  for (const std::int64_t dim : kLengths) {
    const auto query = Normal(dim);
    const auto rows = Normal(21 * dim);
    std::vector<float> together(21);
    kernels().DotRows(query.data(), rows.data(), 21, dim, together.data());
    for (std::int64_t r = 0; r < 21; ++r) {
      float alone = 0;
      kernels().DotRows(query.data(), rows.data() + r * dim, 1, dim, &alone);
      EXPECT_EQ(alone, together[static_cast<std::size_t>(r)])
          << "dim " << dim << " row " << r;
    }
  }
}

TEST_P(KernelsTest, TanhDotRowsAgreesWithDoubles) {
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
            EXPECT_NEAR(dots[static_cast<std::size_t>(r)], naive.dot,
                        TanhDotTolerance(naive, dim, 6))
                << "dim " << dim << " row " << r << " of " << row_count;
          }
          EXPECT_EQ(dots.back(), -7) << "wrote past the end";
        }
      }
    }
  }
}

TEST_P(KernelsTest, TanhHoldsItsErrorOverTheWholeRange) {
  // Rows of one component: what comes back is tanh itself.
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

TEST_P(KernelsTest, TanhDotOfExtremesIsTheSignedSumOfWeights) {
  for (const std::int64_t dim : kLengths) {
    const auto size = static_cast<std::size_t>(dim);
    const auto weight = Normal(dim);
    double norm = 0;
    for (const float w : weight) norm += std::abs(w);
    for (const float extreme : {1e4f, 3e38f}) {
      std::vector<float> query(size), row(size);
      for (std::size_t d = 0; d < size; ++d) {
        // Their sum is infinite for the greater one.
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

TEST_P(KernelsTest, TanhDotStaysWithinTheNormOfItsWeights) {
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

TEST_P(KernelsTest, TanhDotOfARowDoesNotDependOnItsPlace) {
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
      EXPECT_EQ(alone, together[static_cast<std::size_t>(r)])
          << "dim " << dim << " row " << r;
    }
  }
}

TEST_P(KernelsTest, ScaleMultipliesAndSaysWhatIsNotFinite) {
  for (const std::int64_t n : kLengths) {
    for (const std::int64_t offset : kOffsets) {
      auto numbers = Normal(n + offset);
      std::vector<float> scaled(static_cast<std::size_t>(n + 1), -7);
      EXPECT_TRUE(
          kernels().Scale(numbers.data() + offset, n, 0.3f, scaled.data()));
      EXPECT_EQ(scaled.back(), -7) << "wrote past the end";
      for (std::int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(scaled[static_cast<std::size_t>(i)],
                  numbers[static_cast<std::size_t>(i + offset)] * 0.3f);
      }
      for (const float bad :
           {std::numeric_limits<float>::infinity(),
            -std::numeric_limits<float>::infinity(),
            std::numeric_limits<float>::quiet_NaN(), 2e38f, -2e38f}) {
        for (std::int64_t place = 0; place < n; place += 5) {
          float& number = numbers[static_cast<std::size_t>(place + offset)];
          const float good = std::exchange(number, bad);
          EXPECT_FALSE(
              kernels().Scale(numbers.data() + offset, n, 2, scaled.data()));
          number = good;
        }
      }
      // What lies beyond the numbers is nobody's.
      std::fill_n(scaled.begin(), n, 1e38f);
      scaled.back() = std::numeric_limits<float>::infinity();
      EXPECT_TRUE(kernels().Scale(scaled.data(), n, 3, scaled.data()));
      EXPECT_TRUE(std::all_of(scaled.begin(), scaled.end() - 1,
                              [](float s) { return s == 3e38f; }));
      EXPECT_EQ(kernels().Scale(scaled.data(), n, 3, scaled.data()), n == 0);
    }
  }
}

TEST_P(KernelsTest, MaxFindsTheGreatestAnywhere) {
  for (const std::int64_t n : kLengths) {
    for (std::int64_t place = 0; place < n; ++place) {
      std::vector<float> numbers(static_cast<std::size_t>(n), -5);
      numbers[static_cast<std::size_t>(place)] = -2;
      EXPECT_EQ(kernels().Max(numbers.data(), n), -2) << n << " " << place;
    }
  }
}

TEST_P(KernelsTest, SumExpsAgreesWithDoubles) {
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
          const double gap =
              double{logits[static_cast<std::size_t>(i + offset)]} - max;
          const float e = exps[static_cast<std::size_t>(i)];
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
          // The doubles' own rounding is far below; gaps round to floats.
          sum_error += error;
          gap_error += error * -gap + exact * -gap * kEpsilon;
          square_error += 2.001 * error * exact;
        }
        // A few roundings of the sums themselves.
        constexpr double kRounding = 9 * kEpsilon;
        sum_error += 8 * kEpsilon * 1.0001 * sum;
        gap_error += kRounding * 1.0001 * -sum_gap;
        square_error += kRounding * 1.0001 * sum_square;
        // What e below the flush adds: n e^-87.
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

// Squares of what is far below are no floats.
TEST_P(KernelsTest, SumsOfSmallTermsHold) {
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

TEST_P(KernelsTest, ExpOfZeroGapIsExactlyOne) {
  const std::vector<float> logits(19, 3.7f);
  std::vector<float> exps(19);
  const ExpSums sums = kernels().SumExps(logits.data(), 19, 3.7f, exps.data());
  EXPECT_EQ(sums.sum, 19);
  EXPECT_EQ(sums.sum_gap, 0);
  EXPECT_EQ(sums.sum_square, 19);
  EXPECT_THAT(exps, ElementsAreArray(std::vector<float>(19, 1)));
}

TEST_P(KernelsTest, ExpHoldsItsErrorOverTheWholeRange) {
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

TEST_P(KernelsTest, GapsFarBelowCountAsZero) {
  constexpr float kHuge = 3e38f;
  const std::vector<float> logits = {kHuge, -kHuge, 0, kHuge - 1e35f};
  std::vector<float> exps(4);
  const ExpSums sums = kernels().SumExps(logits.data(), 4, kHuge, exps.data());
  EXPECT_THAT(exps, ElementsAre(1, 0, 0, 0));
  EXPECT_EQ(sums.sum, 1);
  EXPECT_EQ(sums.sum_gap, 0);
  EXPECT_EQ(sums.sum_square, 1);
}

TEST_P(KernelsTest, SelectAtLeastKeepsEqualAndGreaterInOrder) {
  std::uniform_int_distribution<int> small(0, 4);
  for (const std::int64_t n : kLengths) {
    for (const std::int64_t offset : kOffsets) {
      std::vector<float> numbers(static_cast<std::size_t>(n + offset));
      for (float& number : numbers) {
        number = static_cast<float>(small(random_));
      }
      for (const float threshold : {-1.0f, 2.0f, 4.0f, 5.0f}) {
        std::vector<std::int32_t> expected;
        for (std::int64_t i = 0; i < n; ++i) {
          if (numbers[static_cast<std::size_t>(i + offset)] >= threshold) {
            expected.push_back(static_cast<std::int32_t>(i));
          }
        }
        std::vector<std::int32_t> positions(static_cast<std::size_t>(n));
        const std::int64_t count = kernels().SelectAtLeast(
            numbers.data() + offset, n, threshold, positions.data());
        ASSERT_EQ(count, static_cast<std::int64_t>(expected.size()));
        positions.resize(static_cast<std::size_t>(count));
        EXPECT_THAT(positions, ElementsAreArray(expected));
        EXPECT_EQ(kernels().CountAtLeast(numbers.data() + offset, n, threshold),
                  count);
      }
    }
  }
}

TEST_P(KernelsTest, DotRowsAtGivesTheBytesOfDotRows) {
  for (const std::int64_t dim : {1, 15, 16, 31, 128, 1024, 1025, 8192}) {
    constexpr std::int64_t kRows = 37;
    const auto query = Normal(dim);
    const auto rows = Normal(kRows * dim);
    std::vector<float> of_all(kRows);
    kernels().DotRows(query.data(), rows.data(), kRows, dim, of_all.data());
    for (const std::int64_t count : {0, 1, 7, 8, 9, 16, 30}) {
      std::vector<std::int32_t> positions;
      std::vector<float> expected;
      for (std::int64_t i = 0; i < count; ++i) {
        positions.push_back(static_cast<std::int32_t>(random_() % kRows));
        expected.push_back(of_all[static_cast<std::size_t>(positions.back())]);
      }
      std::vector<float> dots(static_cast<std::size_t>(count + 1), -7);
      kernels().DotRowsAt(query.data(), rows.data(), positions.data(), count,
                          dim, dots.data());
      EXPECT_EQ(dots.back(), -7) << "wrote past the end";
      dots.pop_back();
      EXPECT_EQ(dots, expected) << count << " of " << dim;
    }
  }
}

// The sum of an exp's logs is continuous where v = 2 log n, so that it does not
// matter on which side of it rounding leaves v: v has at most 4 roundings, of
// which log n + v / 2 takes half and the root, as both arguments are at most
// its square's, less than all; then 2 more each, and that of the sum.
TEST_P(KernelsTest, NormalLogSumsAgreeWithDoubles) {
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

TEST_P(KernelsTest, ExpsPerKeyAgreeWithDoubles) {
  for (const std::int64_t n : kLengths) {
    if (n == 0) continue;
    auto log_sums = Normal(n, 30);
    log_sums[static_cast<std::size_t>(n / 2)] =
        -std::numeric_limits<float>::infinity();
    auto log_counts = Normal(n, 2);
    log_counts[0] = -1;  // none
    const float power = 0.8f;
    const float max =
        power * *std::max_element(log_sums.begin(), log_sums.end());
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
      // The product and the sum that is taken off round once; so do x and its
      // part in exp's error.
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

TEST_P(KernelsTest, DotChunksAgreeWithDoubles) {
  for (const std::int64_t n : {1, 15, 16, 17, 127, 128, 129, 1000}) {
    for (const std::int64_t offset : kOffsets) {
      const auto a = Normal(n + offset);
      const auto b = Normal(n + offset);
      const auto chunk_count = static_cast<std::size_t>((n - 1) / kChunk + 1);
      std::vector<float> sums(chunk_count + 1, -7);
      kernels().DotChunks(a.data() + offset, b.data() + offset, n, sums.data());
      for (std::size_t c = 0; c < chunk_count; ++c) {
        DoubleDot naive;
        const auto first = static_cast<std::int64_t>(c) * kChunk;
        for (std::int64_t i = first; i < std::min(n, first + kChunk); ++i) {
          const auto at = static_cast<std::size_t>(offset + i);
          const double term = double{a[at]} * b[at];
          naive.dot += term;
          naive.magnitude += std::abs(term);
        }
        EXPECT_NEAR(sums[c], naive.dot,
                    (kChunk + 1) * 1.001 * kEpsilon * naive.magnitude)
            << "chunk " << c << " of " << n;
      }
      EXPECT_EQ(sums.back(), -7) << "wrote past the end";
    }
  }
}

TEST_P(KernelsTest, RanksAreThoseOfScalar) {
  for (const std::uint32_t distinct : {1u, 3u, 0xffffffffu}) {
    for (std::int64_t n = 0; n <= kMaxRanked; ++n) {
      std::vector<std::uint32_t> numbers;
      for (std::int64_t i = 0; i < n; ++i) {
        numbers.push_back(static_cast<std::uint32_t>(random_()) % distinct *
                          (0xffffffffu / distinct));
      }
      std::vector<std::uint32_t> ranks(static_cast<std::size_t>(n + 1), 7777);
      auto twins = ranks;
      kernels().Rank(numbers.data(), n, ranks.data());
      KernelsFor(KernelLevel::kScalar).Rank(numbers.data(), n, twins.data());
      EXPECT_EQ(ranks, twins) << n << " of " << distinct;
    }
  }
}

TEST_P(KernelsTest, TransformHasTheBytesOfScalar) {
  for (std::int64_t size = 1; size <= 1024; size *= 2) {
    auto vector = Normal(size + 2);
    auto twin = vector;
    kernels().Transform(vector.data() + 1, size);
    KernelsFor(KernelLevel::kScalar).Transform(twin.data() + 1, size);
    EXPECT_EQ(vector, twin) << size;
  }
}

TEST_P(KernelsTest, TransformIsThatOfItsDefinition) {
  for (const std::int64_t size : {1, 2, 8, 64}) {
    const auto vector = Normal(size);
    auto transformed = vector;
    kernels().Transform(transformed.data(), size);
    for (std::int64_t i = 0; i < size; ++i) {
      DoubleDot naive;
      for (std::int64_t j = 0; j < size; ++j) {
        const double component = vector[static_cast<std::size_t>(j)];
        const bool is_odd = __builtin_parityll(static_cast<unsigned>(i & j));
        naive.dot += is_odd ? -component : component;
        naive.magnitude += std::abs(component);
      }
      // One rounding a stage, of at most 6.
      EXPECT_NEAR(transformed[static_cast<std::size_t>(i)], naive.dot,
                  6 * 1.001 * kEpsilon * naive.magnitude);
    }
  }
}

TEST_P(KernelsTest, AddScaledAddsInDoubles) {
  for (const std::int64_t dim : kLengths) {
    for (const std::int64_t offset : kOffsets) {
      const auto row = Normal(dim + offset);
      const auto start = Normal(dim + 1);
      std::vector<double> sum(start.begin(), start.end());
      kernels().AddScaled(0.3, row.data() + offset, dim, sum.data());
      for (std::int64_t d = 0; d < dim; ++d) {
        const double term = 0.3 * row[static_cast<std::size_t>(d + offset)];
        const double base = start[static_cast<std::size_t>(d)];
        // Two roundings of a double.
        EXPECT_NEAR(sum[static_cast<std::size_t>(d)], base + term,
                    std::ldexp(std::abs(base) + std::abs(term), -51));
      }
      EXPECT_EQ(sum.back(), start.back()) << "wrote past the end";
    }
  }
}

TEST_P(KernelsTest, PoolRowsAgreesWithDoubles) {
  for (const std::int64_t dim : kLengths) {
    for (const std::int64_t row_count : {0, 1, 3, 17}) {
      for (const std::int64_t query_count : {0, 1, 3, 4, 9}) {
        for (const std::int64_t offset : kOffsets) {
          const auto weights = Normal(query_count * row_count + offset);
          const auto rows = Normal(row_count * dim + offset);
          std::vector<float> sums(
              static_cast<std::size_t>(query_count * dim + 1), -7);
          kernels().PoolRows(weights.data() + offset, query_count,
                             rows.data() + offset, row_count, dim, sums.data());
          EXPECT_EQ(sums.back(), -7) << "wrote past the end";
          for (std::int64_t i = 0; i < query_count * dim; ++i) {
            DoubleDot naive;
            for (std::int64_t r = 0; r < row_count; ++r) {
              const double term =
                  double{weights[static_cast<std::size_t>(
                      offset + i / dim * row_count + r)]} *
                  rows[static_cast<std::size_t>(offset + r * dim + i % dim)];
              naive.dot += term;
              naive.magnitude += std::abs(term);
            }
            EXPECT_NEAR(sums[static_cast<std::size_t>(i)], naive.dot,
                        DotTolerance(naive, row_count))
                << "dim " << dim << " rows " << row_count << " sum " << i;
          }
        }
      }
    }
  }
}

TEST_P(KernelsTest, PoolRowsGivesAQueryTheSameBytesAloneAndAmongOthers) {
  for (const std::int64_t dim : kLengths) {
    const auto weights = Normal(7 * 19);
    const auto rows = Normal(19 * dim);
    std::vector<float> together(static_cast<std::size_t>(7 * dim));
    kernels().PoolRows(weights.data(), 7, rows.data(), 19, dim,
                       together.data());
    std::vector<float> alone(static_cast<std::size_t>(dim));
    for (std::int64_t q = 0; q < 7; ++q) {
      kernels().PoolRows(weights.data() + q * 19, 1, rows.data(), 19, dim,
                         alone.data());
      EXPECT_TRUE(
          std::equal(alone.begin(), alone.end(), together.begin() + q * dim))
          << "dim " << dim << " query " << q;
    }
  }
}

TEST_P(KernelsTest, MinusInfinityHasNoExpAndExpsMayOverwriteLogits) {
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

INSTANTIATE_TEST_SUITE_P(
    EveryLevel, KernelsTest,
    ::testing::Values(KernelLevel::kScalar, KernelLevel::kAvx2,
                      KernelLevel::kAvx512),
    [](const ::testing::TestParamInfo<KernelLevel>& tested) {
      return std::string(KernelLevelName(tested.param));
    });

TEST(DispatchTest, ActiveLevelIsSupported) {
  EXPECT_TRUE(IsSupported(KernelLevel::kScalar));
  EXPECT_TRUE(IsSupported(ActiveKernelLevel()));
  EXPECT_EQ(&ActiveKernels(), &KernelsFor(ActiveKernelLevel()));
}

}  // namespace
}  // namespace attendant
