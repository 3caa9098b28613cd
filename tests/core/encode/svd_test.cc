#include "core/encode/svd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// Returns a matrix with about a given share of its entries filled.
SparseMatrix RandomMatrix(std::int32_t rows, std::int32_t columns,
                          double share = .1) {
  std::mt19937 engine(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  SparseMatrix matrix{
      .row_count = rows, .column_count = columns, .entries = {}};
  for (std::int32_t row = 0; row < rows; ++row) {
    for (std::int32_t column = 0; column < columns; ++column) {
      if (uniform(engine) > share) continue;
      matrix.entries.push_back({row, column, uniform(engine) - .3});
    }
  }
  return matrix;
}

// Returns a sum of three outer products.
SparseMatrix RankThreeMatrix(std::int32_t rows, std::int32_t columns) {
  std::mt19937 engine(8);
  std::normal_distribution<double> normal;
  std::vector<double> left(static_cast<std::size_t>(rows) * 3);
  std::vector<double> right(static_cast<std::size_t>(columns) * 3);
  for (double& value : left) value = normal(engine);
  for (double& value : right) value = normal(engine);
  SparseMatrix matrix{
      .row_count = rows, .column_count = columns, .entries = {}};
  for (std::int32_t row = 0; row < rows; ++row) {
    for (std::int32_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (int i = 0; i < 3; ++i) {
        sum += left[row * 3 + i] * right[column * 3 + i];
      }
      matrix.entries.push_back({row, column, sum});
    }
  }
  return matrix;
}

SparseMatrix Transpose(SparseMatrix matrix) {
  std::swap(matrix.row_count, matrix.column_count);
  for (MatrixEntry& entry : matrix.entries) std::swap(entry.row, entry.column);
  return matrix;
}

// Returns the greatest |Q^T Q - I|.
double OrthonormalityError(const std::vector<double>& q, std::int64_t dim) {
  const auto k = static_cast<std::size_t>(dim);
  double worst = 0;
  for (std::size_t a = 0; a < k; ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      double dot = 0;
      for (std::size_t i = 0; i < q.size(); i += k) dot += q[i + a] * q[i + b];
      worst = std::max(worst, std::abs(dot - (a == b ? 1 : 0)));
    }
  }
  return worst;
}

// Returns the greatest |A v - s u| and |A^T u - s v| over the columns, relative
// to s[0].
double Residual(const SparseMatrix& matrix, const TruncatedSvd& svd) {
  const auto k = static_cast<std::size_t>(svd.dim);
  double worst = 0;
  for (std::size_t j = 0; j < k; ++j) {
    std::vector<double> left(static_cast<std::size_t>(matrix.row_count));
    std::vector<double> right(static_cast<std::size_t>(matrix.column_count));
    for (std::size_t i = 0; i < left.size(); ++i) {
      left[i] = -svd.s[j] * svd.u[i * k + j];
    }
    for (std::size_t i = 0; i < right.size(); ++i) {
      right[i] = -svd.s[j] * svd.v[i * k + j];
    }
    for (const MatrixEntry& entry : matrix.entries) {
      const auto row = static_cast<std::size_t>(entry.row);
      const auto column = static_cast<std::size_t>(entry.column);
      left[row] += entry.value * svd.v[column * k + j];
      right[column] += entry.value * svd.u[row * k + j];
    }
    for (const std::vector<double>* residual : {&left, &right}) {
      double square = 0;
      for (const double value : *residual) square += value * value;
      worst = std::max(worst, std::sqrt(square));
    }
  }
  return worst / svd.s[0];
}

// A dense decomposition errs by a small multiple of dimension x epsilon.
double DenseTolerance(const SparseMatrix& matrix) {
  return 10 * kEpsilon * std::max(matrix.row_count, matrix.column_count);
}
// Lanczos stops at 1e-10 x (s_j^2 + mean s^2) / s_j, at most twice as much.
double LanczosTolerance(const TruncatedSvd& svd) {
  return 2e-10 * svd.s.front() / svd.s.back();
}

TEST(SvdTest, DiagonalMatrixByHand) {
  const SparseMatrix matrix{
      .row_count = 3, .column_count = 2, .entries = {{0, 1, -5}, {2, 0, 2}}};
  ASSERT_OK_AND_ASSIGN(const TruncatedSvd svd, ComputeTruncatedSvd(matrix, 2));
  ASSERT_EQ(svd.dim, 2);
  EXPECT_DOUBLE_EQ(svd.s[0], 5);
  EXPECT_DOUBLE_EQ(svd.s[1], 2);
  const std::vector<double> v = {0, 1, 1, 0};
  const std::vector<double> u = {-1, 0, 0, 0, 0, 1};
  for (std::size_t i = 0; i < v.size(); ++i) EXPECT_DOUBLE_EQ(svd.v[i], v[i]);
  for (std::size_t i = 0; i < u.size(); ++i) EXPECT_DOUBLE_EQ(svd.u[i], u[i]);
}

TEST(SvdTest, SmallMatrixIsRebuiltByAllTriplets) {
  const SparseMatrix matrix = RandomMatrix(30, 20, .5);
  ASSERT_OK_AND_ASSIGN(const TruncatedSvd svd, ComputeTruncatedSvd(matrix, 20));
  ASSERT_EQ(svd.dim, 20);
  std::vector<double> rebuilt(30 * 20);
  for (std::size_t row = 0; row < 30; ++row) {
    for (std::size_t column = 0; column < 20; ++column) {
      for (std::size_t j = 0; j < 20; ++j) {
        rebuilt[row * 20 + column] +=
            svd.u[row * 20 + j] * svd.s[j] * svd.v[column * 20 + j];
      }
    }
  }
  for (const MatrixEntry& entry : matrix.entries) {
    rebuilt[entry.row * 20 + entry.column] -= entry.value;
  }
  for (const double error : rebuilt) {
    EXPECT_NEAR(error, 0, DenseTolerance(matrix) * svd.s[0]);
  }
  EXPECT_LE(OrthonormalityError(svd.u, 20), DenseTolerance(matrix));
  EXPECT_LE(OrthonormalityError(svd.v, 20), DenseTolerance(matrix));
}

TEST(SvdTest, LanczosAgreesWithTheDenseDecomposition) {
  const SparseMatrix matrix = RandomMatrix(400, 300);
  ASSERT_OK_AND_ASSIGN(const TruncatedSvd lanczos,
                       ComputeTruncatedSvd(matrix, 10));
  ASSERT_OK_AND_ASSIGN(const TruncatedSvd dense,
                       ComputeTruncatedSvd(matrix, 150));
  ASSERT_EQ(lanczos.dim, 10);
  ASSERT_EQ(dense.dim, 150);
  EXPECT_LE(Residual(matrix, dense), DenseTolerance(matrix));
  EXPECT_LE(Residual(matrix, lanczos), LanczosTolerance(lanczos));
  EXPECT_LE(OrthonormalityError(lanczos.u, 10), DenseTolerance(matrix));
  EXPECT_LE(OrthonormalityError(lanczos.v, 10), DenseTolerance(matrix));
  for (std::size_t j = 0; j < 10; ++j) {
    // Singular values err by no more than the residual.
    EXPECT_NEAR(lanczos.s[j], dense.s[j],
                LanczosTolerance(lanczos) * dense.s[0]);
    // Vectors err by the residual over the gap; signs agree because they are
    // fixed.
    const double gap = dense.s[j] - dense.s[j + 1];
    const double above = j == 0 ? gap : dense.s[j - 1] - dense.s[j];
    const double tolerance =
        2 * LanczosTolerance(lanczos) * dense.s[0] / std::min(gap, above);
    for (std::size_t row = 0; row < 300; ++row) {
      EXPECT_NEAR(lanczos.v[row * 10 + j], dense.v[row * 150 + j], tolerance);
    }
  }
}

TEST(SvdTest, TransposingSwapsTheSides) {
  const SparseMatrix matrix = RandomMatrix(400, 300);
  ASSERT_OK_AND_ASSIGN(const TruncatedSvd tall, ComputeTruncatedSvd(matrix, 5));
  ASSERT_OK_AND_ASSIGN(const TruncatedSvd wide,
                       ComputeTruncatedSvd(Transpose(matrix), 5));
  EXPECT_EQ(tall.s, wide.s);
  ASSERT_EQ(wide.u.size(), tall.v.size());
  ASSERT_EQ(wide.v.size(), tall.u.size());
  EXPECT_LE(Residual(Transpose(matrix), wide), LanczosTolerance(wide));
}

TEST(SvdTest, SmallerRankGivesSmallerDim) {
  for (const std::int32_t columns : {20, 300}) {  // dense, Lanczos
    const SparseMatrix matrix = RankThreeMatrix(400, columns);
    ASSERT_OK_AND_ASSIGN(const TruncatedSvd svd,
                         ComputeTruncatedSvd(matrix, 10));
    EXPECT_EQ(svd.dim, 3) << columns;
    EXPECT_EQ(svd.v.size(), static_cast<std::size_t>(columns) * 3);
    EXPECT_LE(Residual(matrix, svd), LanczosTolerance(svd));
  }
}

TEST(SvdTest, DimIsAtMostTheLesserSide) {
  ASSERT_OK_AND_ASSIGN(const TruncatedSvd svd,
                       ComputeTruncatedSvd(RandomMatrix(40, 10, .5), 4096));
  EXPECT_EQ(svd.dim, 10);
}

TEST(SvdTest, EqualSingularValuesAreAllFound) {
  SparseMatrix matrix{.row_count = 300, .column_count = 300, .entries = {}};
  for (std::int32_t i = 0; i < 300; ++i) {
    matrix.entries.push_back({i, i, i < 3 ? 4. : 2.});
  }
  ASSERT_OK_AND_ASSIGN(const TruncatedSvd svd, ComputeTruncatedSvd(matrix, 6));
  ASSERT_EQ(svd.dim, 6);
  for (std::size_t j = 0; j < 6; ++j) {
    EXPECT_NEAR(svd.s[j], j < 3 ? 4 : 2, 4e-10);
  }
}

TEST(SvdTest, SameInputGivesTheSameBits) {
  const SparseMatrix matrix = RandomMatrix(400, 300);
  ASSERT_OK_AND_ASSIGN(const TruncatedSvd first,
                       ComputeTruncatedSvd(matrix, 8));
  ASSERT_OK_AND_ASSIGN(const TruncatedSvd second,
                       ComputeTruncatedSvd(matrix, 8));
  EXPECT_EQ(first.u, second.u);
  EXPECT_EQ(first.s, second.s);
  EXPECT_EQ(first.v, second.v);
}

TEST(SvdTest, LargestComponentOfEachColumnOfVIsPositive) {
  for (const std::int32_t columns : {20, 300}) {
    ASSERT_OK_AND_ASSIGN(const TruncatedSvd svd,
                         ComputeTruncatedSvd(RandomMatrix(400, columns), 8));
    for (std::size_t j = 0; j < 8; ++j) {
      double largest = 0;
      for (std::size_t i = j; i < svd.v.size(); i += 8) {
        if (std::abs(svd.v[i]) > std::abs(largest)) largest = svd.v[i];
      }
      EXPECT_GT(largest, 0);
    }
  }
}

TEST(SvdTest, EmptyRowsAndColumnsAreExactlyZero) {
  SparseMatrix matrix = RandomMatrix(400, 300);
  std::erase_if(matrix.entries, [](const MatrixEntry& entry) {
    return entry.row == 17 || entry.column == 23;
  });
  ASSERT_OK_AND_ASSIGN(const TruncatedSvd svd, ComputeTruncatedSvd(matrix, 8));
  for (std::size_t j = 0; j < 8; ++j) {
    EXPECT_EQ(svd.u[17 * 8 + j], 0);
    EXPECT_EQ(svd.v[23 * 8 + j], 0);
  }
}

TEST(SvdTest, ScaleOfTheMatrixIsTheScaleOfS) {
  SparseMatrix matrix = RandomMatrix(400, 300);
  ASSERT_OK_AND_ASSIGN(const TruncatedSvd plain,
                       ComputeTruncatedSvd(matrix, 4));
  for (const int exponent : {-900, 900}) {  // squares would leave the range
    SparseMatrix scaled = matrix;
    for (MatrixEntry& entry : scaled.entries) {
      entry.value = std::ldexp(entry.value, exponent);
    }
    ASSERT_OK_AND_ASSIGN(const TruncatedSvd svd,
                         ComputeTruncatedSvd(scaled, 4));
    EXPECT_EQ(svd.v, plain.v);
    for (std::size_t j = 0; j < 4; ++j) {
      EXPECT_DOUBLE_EQ(svd.s[j], std::ldexp(plain.s[j], exponent));
    }
  }
}

TEST(SvdTest, RefusesWhatItCanNotDecompose) {
  const SparseMatrix matrix = RandomMatrix(5, 4);
  EXPECT_THAT(ComputeTruncatedSvd(matrix, 0),
              StatusIs(kInvalid, HasSubstr("dim: got 0")));
  SparseMatrix bad = matrix;
  bad.entries[1].value = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(ComputeTruncatedSvd(bad, 2),
              StatusIs(kInvalid, HasSubstr("entries[1]")));
  bad = matrix;
  bad.entries[0].column = 4;
  EXPECT_THAT(ComputeTruncatedSvd(bad, 2),
              StatusIs(kInvalid, HasSubstr("5 x 4")));
  bad.entries[0].column = -1;
  EXPECT_THAT(ComputeTruncatedSvd(bad, 2),
              StatusIs(kInvalid, HasSubstr("entries[0]")));
  bad.entries.clear();
  EXPECT_THAT(ComputeTruncatedSvd(bad, 2),
              StatusIs(kInvalid, HasSubstr("zeros")));
}

}  // namespace
}  // namespace attendant
