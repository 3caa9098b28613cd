#include <gmock/gmock.h>

#include <algorithm>
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
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return numbers[static_cast<std::size_t>(a)] >
           numbers[static_cast<std::size_t>(b)];
  });
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
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  for (std::size_t k = 1; k <= numbers.size(); ++k) {
    EXPECT_EQ(KthGreatest(numbers, static_cast<std::int64_t>(k)),
              sorted[k - 1]);
    const float near = NearKthGreatest(numbers, static_cast<std::int64_t>(k),
                                       static_cast<std::int64_t>(k + k / 4));
    EXPECT_LE(near, sorted[k - 1]);
  }
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
