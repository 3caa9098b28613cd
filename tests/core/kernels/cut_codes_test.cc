#include "core/kernels/cut_codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/core/kernels/kernels_fixture.h"

namespace attendant {
namespace {

constexpr double kEpsilonOfFloats = 0x1p-24;

class CutCodesTest : public LevelTest {};

// Returns the code of row r's component d, in the nibble layout of codes.h.
int CodeAt(const std::vector<std::uint8_t>& high,
           const std::vector<std::uint8_t>& low, std::int64_t d,
           std::int64_t r) {
  const auto at = static_cast<std::size_t>(64 * (d / 8) + 4 * r + d % 4);
  const int shift = d % 8 < 4 ? 0 : 4;
  return (high[at] >> shift & 15) << 4 | (low[at] >> shift & 15);
}

TEST_P(CutCodesTest, CutsToTheNearestAndTellsTheErrors) {
  std::mt19937_64 random(20261128);
  std::uniform_real_distribution<float> uniform(-120, 120);
  for (const std::int64_t dim : {1, 7, 8, 9, 31, 128, 131}) {
    const auto count = static_cast<std::size_t>(16 * dim);
    std::vector<float> rows(count);
    std::vector<float> scales(16);
    std::vector<float> inverses(16);
    for (std::size_t r = 0; r < 16; ++r) {
      scales[r] = r == 5 ? 0 : std::exp2(static_cast<float>(r) - 8);
      inverses[r] = r == 5 ? 0 : 1 / scales[r];
    }
    for (std::size_t i = 0; i < count; ++i) {
      rows[i] = uniform(random) * scales[i % 16];
    }
    rows[0] = 120 * scales[0];
    rows[1] = -120 * scales[1];
    const std::int64_t bytes = CodePlaneBytes(CodeStepCount(dim));
    std::vector<std::uint8_t> high(static_cast<std::size_t>(bytes + 1), 7);
    std::vector<std::uint8_t> low = high;
    const float before = 0.25;
    std::vector<float> errors(count + 1, before);
    CutSums sums;
    CutCodesKernelsFor(GetParam())
        .Cut(rows.data(), dim, inverses.data(), scales.data(), high.data(),
             low.data(), &sums, errors.data());
    EXPECT_EQ(high.back(), 7) << "wrote past the end";
    EXPECT_EQ(low.back(), 7) << "wrote past the end";
    EXPECT_EQ(errors.back(), before) << "wrote past the end";
    for (std::int64_t r = 0; r < 16; ++r) {
      const auto row = static_cast<std::size_t>(r);
      double square_norm = 0;
      double square_error_8 = 0;
      double square_error_4 = 0;
      for (std::int64_t d = 0; d < 8 * CodeStepCount(dim); ++d) {
        const int code = CodeAt(high, low, d, r);
        if (d >= dim) {
          EXPECT_EQ(code, 128);
          continue;
        }
        const auto at = static_cast<std::size_t>(16 * d + r);
        const double component = double{rows[at]} * inverses[row];
        const double of_8 = component - (code - 128);
        const double of_4 = component - ((code & 0xf0) - 120.5);
        // The sum with 128.5 is rounded to a float, in steps of 2^-16.
        EXPECT_LE(std::abs(of_8), 0.5 + 0x1p-16) << d << " of row " << r;
        EXPECT_NEAR(errors[at], before + of_4 * scales[row],
                    4 * kEpsilonOfFloats * (before + 128 * scales[row]));
        square_norm += component * component;
        square_error_8 += of_8 * of_8;
        square_error_4 += of_4 * of_4;
      }
      // In addition to the sums' own roundings, the rounding of a component,
      // which is at most 120, changes its stated error.
      const double roundings = static_cast<double>(dim + 4) * kEpsilonOfFloats;
      const double moved = 2 * 120 * kEpsilonOfFloats;
      EXPECT_NEAR(sums.square_norms[r], square_norm, roundings * square_norm);
      EXPECT_NEAR(
          sums.square_errors_8[r], square_error_8,
          roundings * square_error_8 + static_cast<double>(dim) * moved * 0.6);
      EXPECT_NEAR(
          sums.square_errors_4[r], square_error_4,
          roundings * square_error_4 + static_cast<double>(dim) * moved * 8.1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, CutCodesTest, EveryLevel(), NameOf);

}  // namespace
}  // namespace attendant
