#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "core/kernels/select.h"

namespace attendant {
namespace {

std::vector<std::int32_t> BySorting(const std::vector<float>& numbers,
                                    std::int64_t count) {
  std::vector<std::int32_t> order(numbers.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](auto a, auto b) { return numbers[a] > numbers[b]; });
  order.resize(static_cast<std::size_t>(count));

  return order;
}

TEST(SelectBestTest, IsWhatSortingGives) {
  std::mt19937_64 random(3);
  for (const int distinct : {1, 7, 1 << 20}) {
    for (const std::size_t size : {1u, 2u, 15u, 16u, 100u, 1000u, 4001u}) {
      std::vector<float> numbers(size);
      for (float& number : numbers) {
        number = static_cast<float>(random() %
                                    static_cast<std::uint64_t>(distinct)) -
                 50;
      }
      for (const std::size_t count :
           {std::size_t{1}, size / 100, size / 10, size / 3, size - 1, size}) {
        if (count == 0) continue;
        std::vector<std::int32_t> positions;
        SelectBest(numbers, static_cast<std::int64_t>(count), positions);
        EXPECT_EQ(positions,
                  BySorting(numbers, static_cast<std::int64_t>(count)))
            << distinct << " " << size << " " << count;
      }
    }
  }
}

TEST(KthGreatestTest, IsWhatSortingGives) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::mt19937_64 random(4);
  std::vector<float> numbers = {-kInfinity, -kInfinity, kInfinity, 0.0f,  -0.0f,
                                1e-40f,     -1e-40f,    3e38f,     -3e38f};
  for (int i = 0; i < 300; ++i) {
    numbers.push_back(static_cast<float>(random() % 200) - 100);
  }
  std::vector<float> sorted = numbers;
  std::ranges::sort(sorted, std::greater<>());
  for (std::size_t k = 1; k <= numbers.size(); ++k) {
    EXPECT_EQ(KthGreatest(numbers, static_cast<std::int64_t>(k)),
              sorted[k - 1]);
  }
}

TEST(NearKthGreatestTest, AtLeastKAndAtMostSoManyAreNotBelow) {
  std::mt19937_64 random(5);
  // Distinct numbers of all sizes, so that no number ties with the k-th.
  std::vector<float> numbers;
  for (int i = -300; i < 300; ++i) {
    numbers.push_back(std::ldexp(i < 0 ? -1.0f : 1.0f, i % 100) *
                      static_cast<float>(1000 + std::abs(i)));
  }
  std::ranges::shuffle(numbers, random);
  std::vector<float> sorted = numbers;
  std::ranges::sort(sorted, std::greater<>());
  ASSERT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
  for (std::int64_t k = 1; k <= 600; ++k) {
    for (const std::int64_t most : {k, k + k / 4, 2 * k}) {
      const float near = NearKthGreatest(numbers, k, most);
      const auto count = std::ranges::count_if(
          numbers, [near](float number) { return number >= near; });
      EXPECT_GE(count, k);
      EXPECT_LE(count, most);
    }
  }
  // The count may exceed `most` only by numbers equal to the k-th.
  std::fill_n(numbers.begin(), 100, sorted[0]);
  EXPECT_EQ(NearKthGreatest(numbers, 10, 12), sorted[0]);
}

TEST(SelectBestTest, NumbersThatAreNoneLeavePlacesValid) {
  std::vector<std::int32_t> places(5000, 4999);  // what the last call left
  SelectBest(std::vector<float>(400, std::numeric_limits<float>::quiet_NaN()),
             3, places);
  ASSERT_EQ(places.size(), 3u);
  for (const std::int32_t place : places) EXPECT_LT(place, 400);
  EXPECT_NE(places[0], places[1]);
}

}  // namespace
}  // namespace attendant
