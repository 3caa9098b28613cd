#include "core/kernels/sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace attendant {
namespace {

TEST(SortAscendingTest, IsWhatSortingGives) {
  std::mt19937_64 random(1);
  for (const std::size_t size : {0u, 1u, 2u, 23u, 24u, 100u, 129u, 1000u}) {
    for (const std::uint64_t distinct : {1ull, 5ull, ~0ull}) {
      std::vector<std::uint64_t> numbers(size);
      for (std::uint64_t& number : numbers) number = random() % distinct;
      std::vector<std::uint64_t> expected = numbers;
      std::sort(expected.begin(), expected.end());
      SortAscending(std::span(numbers));
      EXPECT_EQ(numbers, expected) << size << " of " << distinct;
    }
  }
}

TEST(DescendingKeyTest, OrdersByNumberThenPlace) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float descending[] = {kInfinity, 3e38f, 1,      1e-40f,    0,
                              -1e-40f,   -1,    -3e38f, -kInfinity};
  for (std::size_t i = 1; i < std::size(descending); ++i) {
    EXPECT_LT(DescendingKey(descending[i - 1], 9),
              DescendingKey(descending[i], 0));
  }
  EXPECT_LT(DescendingKey(2, 3), DescendingKey(2, 4));
  EXPECT_LT(DescendingKey(0.0f, 3), DescendingKey(-0.0f, 4));
  EXPECT_LT(DescendingKey(-0.0f, 3), DescendingKey(0.0f, 4));
}

}  // namespace
}  // namespace attendant
