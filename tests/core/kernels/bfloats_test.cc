#include "core/kernels/bfloats.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/core/kernels/kernels_fixture.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;

// 2^-24: the relative error of one rounding to float.
constexpr double kRoundoff = 5.9604644775390625e-8;
// Zero, one, lengths around the vector widths (16, 32) and their multiples, and
// odd lengths.
const std::int64_t kBfloatCounts[] = {0,  1,  2,  7,  8,  15, 16,  17,  31,
                                      32, 33, 63, 64, 65, 96, 100, 128, 1000};

double Widen(Bfloat number) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(number) << 16);
}

std::vector<Bfloat> Rounded(const std::vector<float>& numbers, float factor) {
  std::vector<Bfloat> bfloats(numbers.size());
  RoundToBfloats(numbers.data(), static_cast<std::int64_t>(numbers.size()),
                 factor, bfloats.data());
  return bfloats;
}

std::vector<float> Normal(std::int64_t size) {
  static std::mt19937 random(20240607);
  std::normal_distribution<float> normal;
  std::vector<float> floats(static_cast<std::size_t>(size));
  for (float& f : floats) f = normal(random);
  return floats;
}

TEST(RoundToBfloatsTest, TakesTheNearestAndOfTwoTheEvenOne) {
  // A bfloat has 8 significant bits: 1 and 1 + 2^-7 are neighbours.
  EXPECT_THAT(Rounded({1, 1.00390625f, 1.00390637f, 1.01171875f, -1, 0}, 1),
              ElementsAre(0x3f80, 0x3f80, 0x3f81, 0x3f82, 0xbf80, 0));
  EXPECT_THAT(Rounded({3, -0.5f}, 0.5f), ElementsAre(0x3fc0, 0xbe80));
}

TEST(RoundToBfloatsTest, IsOffByAtMostAHalfOfTheLastBit) {
  const float factor = 0.37f;
  const std::vector<float> numbers = Normal(10000);
  const std::vector<Bfloat> bfloats = Rounded(numbers, factor);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double product = numbers[i] * factor;  // as a float
    EXPECT_NEAR(Widen(bfloats[i]), product,
                std::ldexp(std::abs(product), -8) +
                    std::ldexp(std::numeric_limits<float>::min(), -8));
  }
}

class BfloatsTest : public TableTest<BfloatKernels> {
 protected:
};

TEST_P(BfloatsTest, DotAgreesWithDoubles) {
  for (const std::int64_t n : kBfloatCounts) {
    for (const std::size_t offset : {0, 1, 3}) {
      const auto begin = static_cast<std::int64_t>(offset);
      const std::vector<Bfloat> a = Rounded(Normal(n + begin), 1);
      const std::vector<Bfloat> b = Rounded(Normal(n + begin), 0.1f);
      double dot = 0;
      double magnitude = 0;
      for (std::size_t i = offset; i < a.size(); ++i) {
        dot += Widen(a[i]) * Widen(b[i]);
        magnitude += std::abs(Widen(a[i]) * Widen(b[i]));
      }
      // Sums are finite and far from the least normal float.
      const double roundings = std::ceil(static_cast<double>(n) / 8) + 4;
      EXPECT_NEAR(kernels().Dot(a.data() + offset, b.data() + offset, n), dot,
                  roundings * kRoundoff * magnitude * 1.001)
          << n << " from " << offset;
    }
  }
}

TEST_P(BfloatsTest, DotDoesNotReadBeyondTheEnd) {
  // A NaN follows each vector; if a kernel read it, the sum would be NaN.
  for (const std::int64_t n : kBfloatCounts) {
    std::vector<Bfloat> ones(static_cast<std::size_t>(n + 64), 0x7fc0);
    std::fill_n(ones.begin(), n, Bfloat{0x3f80});
    EXPECT_EQ(kernels().Dot(ones.data(), ones.data(), n),
              static_cast<float>(n));
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, BfloatsTest,
                         ::testing::ValuesIn(EveryTable(BfloatKernelsFor)),
                         NameOfTable<BfloatKernels>);

TEST(BfloatDispatchTest, ActiveTableIsThatOfTheActiveLevel) {
  EXPECT_EQ(&ActiveBfloatKernels(), &BfloatKernelsFor(ActiveKernelLevel()));
}

}  // namespace
}  // namespace attendant
