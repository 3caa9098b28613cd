#include "core/kernels/weigh_codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/codes.h"
#include "tests/core/kernels/kernels_fixture.h"

namespace attendant {
namespace {

constexpr std::uint32_t Greatest(int planes) {
  return (1u << (kCodeWeightPlaneBits * planes)) - 1;
}

class WeighCodesTest : public TableTest<WeighCodesKernels> {
 protected:
  // Compares the result with the sum defined in the header, nibble by nibble.
  void Check(const std::vector<std::uint32_t>& weights, int planes,
             const std::vector<std::int32_t>& blocks,
             const std::vector<std::uint8_t>& plane, std::int64_t step_count) {
    std::vector<std::int64_t> sums(static_cast<std::size_t>(8 * step_count),
                                   -1);
    kernels().Weigh4(weights.data(), planes, blocks.data(),
                     static_cast<std::int64_t>(blocks.size()), plane.data() + 1,
                     step_count, sums.data());
    for (std::int64_t d = 0; d < 8 * step_count; ++d) {
      std::int64_t expected = 0;
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        for (std::int64_t r = 0; r < 16; ++r) {
          const std::uint8_t byte = plane[1 + blocks[b] * 64 * step_count +
                                          64 * (d / 8) + 4 * r + d % 4];
          const std::int64_t nibble = d % 8 < 4 ? byte & 15 : byte >> 4;
          expected += nibble * weights[16 * b + static_cast<std::size_t>(r)];
        }
      }
      ASSERT_EQ(sums[d], expected)
          << "component " << d << " of " << 8 * step_count << ", "
          << blocks.size() << " blocks";
    }
  }

  std::mt19937_64 random_{20261120};
};

TEST_P(WeighCodesTest, AddsUpWeightedNibbles) {
  constexpr std::int64_t kBlocks = 70;
  for (const std::int64_t step_count : {1, 2, 3, 16, 33}) {
    // From an unaligned start.
    std::vector<std::uint8_t> plane(
        static_cast<std::size_t>(1 + kBlocks * 64 * step_count));
    for (std::uint8_t& byte : plane)
      byte = static_cast<std::uint8_t>(random_());
    for (const std::size_t block_count : {0, 1, 2, 7, 63, 64}) {
      std::vector<std::int32_t> blocks(block_count);
      for (std::int32_t& block : blocks) {
        block = static_cast<std::int32_t>(random_() % kBlocks);
      }
      std::vector<std::uint32_t> weights(16 * block_count);
      for (int planes = 1; planes <= kCodeWeightPlanes; ++planes) {
        for (std::uint32_t& weight : weights) {
          weight = static_cast<std::uint32_t>(random_()) & Greatest(planes);
        }
        Check(weights, planes, blocks, plane, step_count);
      }
    }
  }
}

TEST_P(WeighCodesTest, NothingOverflowsWhereAllIsGreatest) {
  const std::vector<std::uint8_t> plane(1 + 64 * 2, 0xff);
  for (int planes = 1; planes <= kCodeWeightPlanes; ++planes) {
    Check(std::vector<std::uint32_t>(16 * kMaxWeighedBlocks, Greatest(planes)),
          planes, std::vector<std::int32_t>(kMaxWeighedBlocks, 0), plane, 2);
  }
}

TEST_P(WeighCodesTest, WeightsOfNothingAddNothing) {
  std::vector<std::uint8_t> plane(1 + 64 * 4, 0xa7);
  Check(std::vector<std::uint32_t>(32, 0), 1, {1, 0}, plane, 2);
}

TEST_P(WeighCodesTest, SumsAndScalesAsDoublesDo) {
  std::uniform_real_distribution<float> uniform;
  for (const std::int64_t n : {0, 1, 7, 8, 15, 16, 17, 100, 1023, 1024}) {
    const auto size = static_cast<std::size_t>(n);
    // From an unaligned start.
    std::vector<float> numbers(size + 1);
    std::vector<float> scales(size + 1);
    for (std::size_t i = 0; i <= size; ++i) {
      numbers[i] = std::exp(-20 * uniform(random_));
      scales[i] = uniform(random_);
    }
    // One element more stays as it was.
    std::vector<float> weights(size + 2, -1);
    WeightSums want;
    double number_sum = 0;
    for (std::size_t i = 1; i <= size; ++i) {
      const float weight = numbers[i] * scales[i];
      number_sum += numbers[i];
      want.greatest = std::max(want.greatest, weight);
      want.sum += weight;
      want.square_sum += double{weight} * weight;
    }
    EXPECT_NEAR(kernels().Sum(numbers.data() + 1, n), number_sum,
                static_cast<double>(n / 8 + 3) * 0x1p-24 * number_sum);
    const WeightSums sums = kernels().ScaleWeights(
        numbers.data() + 1, scales.data() + 1, n, weights.data() + 1);
    for (std::size_t i = 1; i <= size; ++i) {
      ASSERT_EQ(weights[i], numbers[i] * scales[i]) << i << " of " << n;
    }
    EXPECT_EQ(weights.back(), -1);
    EXPECT_EQ(sums.greatest, want.greatest);
    // Each of n additions rounds once, and each square before it.
    const double rounding = static_cast<double>(n + 1) * 0x1p-53;
    EXPECT_NEAR(sums.sum, want.sum, rounding * want.sum);
    EXPECT_NEAR(sums.square_sum, want.square_sum, rounding * want.square_sum);
  }
}

TEST_P(WeighCodesTest, RoundsToTheNearest) {
  constexpr float kFactor = (1 << 21) - 2;
  std::uniform_real_distribution<float> uniform;
  for (const std::int64_t n : {0, 1, 15, 16, 31, 1024}) {
    std::vector<float> weights(static_cast<std::size_t>(n) + 1);
    for (float& weight : weights) weight = uniform(random_);
    weights.back() = 1;
    std::vector<std::uint32_t> rounded(weights.size() + 1, 77);
    kernels().RoundWeights(weights.data() + 1, n, kFactor, rounded.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const double product = double{weights[i + 1]} * kFactor;
      // The product and its sum with a half may each be rounded to a float.
      ASSERT_NEAR(rounded[i], product, 0.5 + 2 * product * 0x1p-24);
    }
    EXPECT_EQ(rounded[n], 77u);
    if (n > 0) {
      EXPECT_EQ(rounded[static_cast<std::size_t>(n) - 1], (1u << 21) - 2);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, WeighCodesTest,
                         ::testing::ValuesIn(EveryTable(WeighCodesKernelsFor)),
                         NameOfTable<WeighCodesKernels>);

}  // namespace
}  // namespace attendant
