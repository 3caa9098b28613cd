#include "core/attention/approximations/row_reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/base/random.h"
#include "tests/core/attention/approximations/approximation_twins.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::SizeIs;

TEST(ReduceRowsTest, MeansAreOfSegments) {
  const Matrix rows = {5, 1, {1, 2, 3, 4, 5}};
  const std::int32_t positions[] = {4, 0, 1, 2, 3};
  ASSERT_OK_AND_ASSIGN(
      const Matrix reduced,
      Reduced(rows.view(), positions, LinformerOptions{.row_count = 2}));
  // Sums of rows 4, 0 and of rows 1, 2, 3.
  EXPECT_THAT(reduced.data, ::testing::ElementsAre(3, 3));
}

TEST(ReduceRowsTest, RandomRowsAreOneMatrixTimesTheRows) {
  // An odd number of rows: pairs of normals do not fill a row of the matrix.
  const Matrix keys = Normals(31, 2, 4);
  const Matrix values = Normals(31, 3, 5);
  std::vector<std::int32_t> positions(31);
  std::iota(positions.begin(), positions.end(), 0);
  const LinformerOptions options = {
      .row_count = 3, .kind = ReductionKind::kRandom, .seed = 9};
  const MatrixView inputs[] = {keys.view(), values.view()};
  ASSERT_OK_AND_ASSIGN(const std::vector<Matrix> reduced,
                       ReduceRows(inputs, positions, options, {}));
  ASSERT_THAT(reduced, SizeIs(2));
  for (std::size_t k = 0; k < 2; ++k) {
    const MatrixView rows = inputs[k];
    for (std::int64_t r = 0; r < 3; ++r) {
      std::vector<float> factors(31);
      FillNormals(NormalUse::kRowReduction, 9,
                  static_cast<std::uint64_t>(r * 32), factors);
      for (std::size_t d = 0; d < static_cast<std::size_t>(rows.dim); ++d) {
        double want = 0;
        double size = 0;
        for (std::int64_t i = 0; i < 31; ++i) {
          const double term = factors[i] / std::sqrt(3.0) * rows.Row(i)[d];
          want += term;
          size += std::abs(term);
        }
        // Both sum 31 terms, each with at most 4 roundings, as doubles; the
        // result is rounded to a float.
        EXPECT_NEAR(reduced[k].view().Row(r)[d], want,
                    0x1p-24 * std::abs(want) + 2 * 36 * 0x1p-53 * size);
      }
    }
  }
}

}  // namespace
}  // namespace attendant
