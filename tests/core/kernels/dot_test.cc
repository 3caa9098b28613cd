// Dot products.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "core/kernels/kernels.h"
#include "tests/core/kernels/kernels_fixture.h"

namespace attendant {
namespace {

using DotTest = KernelsTest;

TEST_P(DotTest, DotRowsAgreesWithDoubles) {
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
          EXPECT_NEAR(dots[r], naive.dot, DotTolerance(naive, dim))
              << "dim " << dim << " row " << r << " of " << row_count;
        }
        EXPECT_EQ(dots.back(), -7) << "wrote past the end";
      }
    }
  }
}

TEST_P(DotTest, LongSumsKeepTheirDigits) {
  // The roundings stated in kernels.h, which grow more slowly with dim than
  // those of a single sum.
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
      EXPECT_NEAR(dots[r], naive.dot, count * naive.magnitude)
          << "dim " << dim << " row " << r;
      const DoubleTanhDot tanh_naive =
          NaiveTanhDot(zeros.data(), query.data(), row, dim);
      EXPECT_NEAR(tanh_dots[r], tanh_naive.dot,
                  (count + std::ldexp(1.0, -21)) * tanh_naive.magnitude)
          << "dim " << dim << " row " << r;
      float alone = 0;
      kernels().DotRows(query.data(), row, 1, dim, &alone);
      EXPECT_EQ(alone, dots[r]);
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

TEST_P(DotTest, DotRowsMultiGivesTheBytesOfDotRows) {
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

TEST_P(DotTest, ManyQueriesAndRowsGiveTheBytesOfDotRows) {
  for (const std::int64_t dim : {31, 32, 33, 100, 128, 255, 256, 257}) {
    const auto queries = Normal(33 * dim);
    auto rows = Normal(100 * dim);
    // A sum of -0 and no other number.
    std::fill_n(rows.begin(), 2 * dim, -0.0f);
    rows[3 * dim] = std::numeric_limits<float>::quiet_NaN();
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

TEST_P(DotTest, DotOfARowDoesNotDependOnItsPlace) {
  for (const std::int64_t dim : kLengths) {
    const auto query = Normal(dim);
    const auto rows = Normal(21 * dim);
    std::vector<float> together(21);
    kernels().DotRows(query.data(), rows.data(), 21, dim, together.data());
    for (std::int64_t r = 0; r < 21; ++r) {
      float alone = 0;
      kernels().DotRows(query.data(), rows.data() + r * dim, 1, dim, &alone);
      EXPECT_EQ(alone, together[r]) << "dim " << dim << " row " << r;
    }
  }
}

TEST_P(DotTest, DotRowsAtGivesTheBytesOfDotRows) {
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
        expected.push_back(of_all[positions.back()]);
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

INSTANTIATE_TEST_SUITE_P(Levels, DotTest, EveryLevel(), NameOf);

TEST(DispatchTest, ActiveLevelIsSupported) {
  EXPECT_TRUE(IsSupported(KernelLevel::kScalar));
  EXPECT_TRUE(IsSupported(ActiveKernelLevel()));
  EXPECT_EQ(&ActiveKernels(), &KernelsFor(ActiveKernelLevel()));
}

}  // namespace
}  // namespace attendant
