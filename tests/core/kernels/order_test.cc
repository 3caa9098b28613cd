// Which numbers are greater than others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "core/kernels/kernels.h"
#include "tests/core/kernels/kernels_fixture.h"

namespace attendant {
namespace {

using ::testing::ElementsAreArray;

using OrderTest = KernelsTest;

TEST_P(OrderTest, ScaleMultipliesAndSaysWhatIsNotFinite) {
  for (const std::int64_t n : kLengths) {
    for (const std::int64_t offset : kOffsets) {
      auto numbers = Normal(n + offset);
      std::vector<float> scaled(static_cast<std::size_t>(n + 1), -7);
      EXPECT_TRUE(
          kernels().Scale(numbers.data() + offset, n, 0.3f, scaled.data()));
      EXPECT_EQ(scaled.back(), -7) << "wrote past the end";
      for (std::int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(scaled[i], numbers[i + offset] * 0.3f);
      }
      for (const float bad :
           {std::numeric_limits<float>::infinity(),
            -std::numeric_limits<float>::infinity(),
            std::numeric_limits<float>::quiet_NaN(), 2e38f, -2e38f}) {
        for (std::int64_t place = 0; place < n; place += 5) {
          float& number = numbers[place + offset];
          const float good = std::exchange(number, bad);
          EXPECT_FALSE(
              kernels().Scale(numbers.data() + offset, n, 2, scaled.data()));
          number = good;
        }
      }
      // Elements past the numbers must not be read or written.
      std::fill_n(scaled.begin(), n, 1e38f);
      scaled.back() = std::numeric_limits<float>::infinity();
      EXPECT_TRUE(kernels().Scale(scaled.data(), n, 3, scaled.data()));
      EXPECT_TRUE(std::all_of(scaled.begin(), scaled.end() - 1,
                              [](float s) { return s == 3e38f; }));
      EXPECT_EQ(kernels().Scale(scaled.data(), n, 3, scaled.data()), n == 0);
    }
  }
}

TEST_P(OrderTest, MaxFindsTheGreatestAnywhere) {
  for (const std::int64_t n : kLengths) {
    for (std::int64_t place = 0; place < n; ++place) {
      std::vector<float> numbers(static_cast<std::size_t>(n), -5);
      numbers[place] = -2;
      EXPECT_EQ(kernels().Max(numbers.data(), n), -2) << n << " " << place;
    }
  }
}

TEST_P(OrderTest, AddMaxAddsAndFindsTheGreatestSum) {
  std::uniform_real_distribution<float> uniform(-3, 3);
  for (const std::int64_t n : kLengths) {
    if (n == 0) continue;
    for (const std::int64_t offset : kOffsets) {
      // Elements past the numbers must not be read or written.
      std::vector<float> numbers(static_cast<std::size_t>(n + offset) + 1);
      std::vector<float> terms(numbers.size());
      for (float& number : numbers) number = uniform(random_);
      for (float& term : terms) term = uniform(random_);
      const auto first = static_cast<std::size_t>(offset);
      numbers[first] = -std::numeric_limits<float>::infinity();
      std::vector<float> expected = numbers;
      for (std::size_t i = first; i + 1 < expected.size(); ++i) {
        expected[i] += terms[i - first];
      }
      const float max =
          kernels().AddMax(terms.data(), n, numbers.data() + offset);
      EXPECT_EQ(numbers, expected) << n << " " << offset;
      EXPECT_EQ(max, *std::max_element(expected.begin() + offset,
                                       expected.end() - 1));
    }
  }
}

TEST_P(OrderTest, CorrectMaxCorrectsAndFindsTheGreatest) {
  std::uniform_real_distribution<float> uniform(-3, 3);
  constexpr float kFactor = 0.7f;
  constexpr float kShift = -2.1f;
  for (const std::int64_t n : kLengths) {
    if (n == 0) continue;
    for (const std::int64_t offset : kOffsets) {
      // Elements past the logits must not be read or written.
      std::vector<float> logits(static_cast<std::size_t>(n + offset) + 1);
      std::vector<float> scales(logits.size());
      for (float& logit : logits) logit = uniform(random_);
      for (float& scale : scales) scale = uniform(random_);
      const std::vector<float> before = logits;
      const float max = kernels().CorrectMax(scales.data(), kFactor, kShift, n,
                                             logits.data() + offset);
      for (std::size_t i = 0; i < logits.size(); ++i) {
        const std::int64_t at = static_cast<std::int64_t>(i) - offset;
        if (at < 0 || at >= n) {
          EXPECT_EQ(logits[i], before[i]);
          continue;
        }
        const double scale = scales[at];
        // Terms are at most 9 in size, and each of four operations rounds once.
        EXPECT_NEAR(logits[i],
                    before[i] + (double{kShift} - kFactor * scale * scale),
                    4 * 9 * 0x1p-24);
      }
      EXPECT_EQ(max,
                *std::max_element(logits.begin() + offset, logits.end() - 1));
    }
  }
}

TEST_P(OrderTest, SelectAtLeastKeepsEqualAndGreaterInOrder) {
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
          if (numbers[i + offset] >= threshold) {
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

TEST_P(OrderTest, RanksAreThoseOfScalar) {
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

INSTANTIATE_TEST_SUITE_P(Levels, OrderTest, EveryLevel(), NameOf);

}  // namespace
}  // namespace attendant
