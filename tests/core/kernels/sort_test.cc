#include "core/kernels/sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
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
      std::ranges::sort(expected);
      SortAscending(std::span(numbers));
      EXPECT_EQ(numbers, expected) << size << " of " << distinct;
    }
  }
}

TEST(SortDescendingTest, IsWhatStableSortingGives) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::mt19937_64 random(2);
  for (const std::size_t size :
       {0u, 1u, 16u, 17u, 100u, 191u, 192u, 193u, 1000u}) {
    for (const std::uint64_t distinct : {1ull, 5ull, 1ull << 24}) {
      std::vector<float> numbers(size);
      for (float& number : numbers) {
        number = static_cast<float>(random() % distinct) - 2;
      }
      const float some[] = {kInfinity, 3e38f, 1e-40f,  0,
                            -0.0f,     0,     -1e-40f, -kInfinity};
      if (size > 16) std::copy(std::begin(some), std::end(some), &numbers[5]);
      std::vector<std::int32_t> expected(size);
      std::iota(expected.begin(), expected.end(), 0);
      std::ranges::stable_sort(
          expected, [&](auto a, auto b) { return numbers[a] > numbers[b]; });
      std::vector<std::int32_t> places;
      SortDescending(numbers, places);
      EXPECT_EQ(places, expected) << size << " of " << distinct;
    }
  }
}

}  // namespace
}  // namespace attendant
