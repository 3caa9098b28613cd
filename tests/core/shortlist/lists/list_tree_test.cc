#include "core/shortlist/lists/list_tree.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace attendant {
namespace {

using ::testing::ElementsAre;

// Returns, for each list by place, its group once `count` groups are left.
std::vector<int> Groups(const ListTree& tree, std::int64_t count) {
  const std::vector<std::int32_t> begins = tree.Cut(count);
  std::vector<int> groups;
  for (const std::int32_t place : tree.places()) {
    groups.push_back(
        static_cast<int>(std::upper_bound(begins.begin(), begins.end(), place) -
                         begins.begin() - 1));
  }
  return groups;
}

// Ward's method by its definition: all pairs at every step. Returns the groups,
// named by their first list.
std::vector<std::size_t> NaiveGroups(const std::vector<double>& means,
                                     std::int64_t dim,
                                     const std::vector<std::int64_t>& counts,
                                     std::size_t left) {
  struct Group {
    std::vector<double> mean;
    double count;
  };
  const auto width = static_cast<std::size_t>(dim);
  std::vector<std::size_t> group_of(counts.size());
  std::vector<Group> groups;
  std::set<std::size_t> alive;
  for (std::size_t l = 0; l < counts.size(); ++l) {
    group_of[l] = l;
    alive.insert(l);
    groups.push_back(
        {{means.begin() + static_cast<std::ptrdiff_t>(l * width),
          means.begin() + static_cast<std::ptrdiff_t>((l + 1) * width)},
         static_cast<double>(counts[l])});
  }
  while (alive.size() > left) {
    double best = std::numeric_limits<double>::infinity();
    std::size_t best_a = 0;
    std::size_t best_b = 0;
    for (const std::size_t a : alive) {
      for (const std::size_t b : alive) {
        if (b <= a) continue;
        double square = 0;
        for (std::size_t d = 0; d < width; ++d) {
          const double gap = groups[a].mean[d] - groups[b].mean[d];
          square += gap * gap;
        }
        const double cost = groups[a].count * groups[b].count /
                            (groups[a].count + groups[b].count) * square;
        if (cost < best) {
          best = cost;
          best_a = a;
          best_b = b;
        }
      }
    }
    Group& a = groups[best_a];
    const Group& b = groups[best_b];
    for (std::size_t d = 0; d < width; ++d) {
      a.mean[d] =
          (a.count * a.mean[d] + b.count * b.mean[d]) / (a.count + b.count);
    }
    a.count += b.count;
    alive.erase(best_b);
    std::replace(group_of.begin(), group_of.end(), best_b, best_a);
  }
  return group_of;
}

TEST(ListTreeTest, MergesTheCheapestPairFirst) {
  constexpr std::int64_t kDim = 5;
  constexpr std::size_t kLists = 60;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> means(kLists * kDim);
  for (float& component : means) component = normal(random);
  std::vector<std::int64_t> counts(kLists);
  for (std::int64_t& count : counts)
    count = 1 + static_cast<int>(random() % 50);
  const ListTree tree({means.data(), kLists, kDim}, counts);
  const std::vector<double> exact(means.begin(), means.end());
  for (const std::size_t left : {1u, 2u, 3u, 10u, 30u, 59u, 60u}) {
    const std::vector<int> groups =
        Groups(tree, static_cast<std::int64_t>(left));
    const auto naive = NaiveGroups(exact, kDim, counts, left);
    for (std::size_t a = 0; a < kLists; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        EXPECT_EQ(groups[a] == groups[b], naive[a] == naive[b])
            << left << ": " << a << " and " << b;
      }
    }
  }
}

TEST(ListTreeTest, PlacesAreAnOrder) {
  const std::vector<float> means = {5, 1, 9, 1.5, 5.5};
  const std::vector<std::int64_t> counts = {1, 2, 3, 4, 5};
  const ListTree tree({means.data(), 5, 1}, counts);
  std::vector<std::int32_t> places = tree.places();
  std::ranges::sort(places);
  EXPECT_THAT(places, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(tree.Cut(5), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(tree.Cut(1), ElementsAre(0, 5));
}

// Far from the origin, rounding determines the distances: a merged group may be
// nearer to others than its parts were.
TEST(ListTreeTest, PlacesAreAnOrderWhateverRoundingDoes) {
  constexpr std::int64_t kDim = 128;
  constexpr std::int64_t kLists = 256;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::int64_t> counts(kLists);
    for (std::int64_t& count : counts) {
      count = 50 + static_cast<std::int64_t>(random() % 200);
    }
    std::normal_distribution<float> normal;
    std::vector<float> means(kLists * kDim);
    for (float& component : means) component = 2000 + normal(random);
    const ListTree tree({means.data(), kLists, kDim}, counts);
    std::vector<std::int32_t> places = tree.places();
    std::ranges::sort(places);
    std::vector<std::int32_t> all(kLists);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(places, all) << seed;
    std::vector<std::int32_t> begins = tree.Cut(kLists);
    all.push_back(kLists);
    EXPECT_EQ(begins, all) << seed;
  }
}

TEST(ListTreeTest, TakesOneListAndEmptyOnesAndHugeMeans) {
  const std::vector<float> one = {3};
  const std::vector<std::int64_t> one_count = {7};
  EXPECT_THAT(ListTree({one.data(), 1, 1}, one_count).Cut(1),
              ElementsAre(0, 1));

  const std::vector<float> means = {1e38f, -1e38f, 0, 0, 1e38f, 3e38f};
  const std::vector<std::int64_t> counts = {5, 5, 0, 0, 5, 5};
  const ListTree tree({means.data(), 6, 1}, counts);
  for (std::int64_t count = 1; count <= 6; ++count) {
    const std::vector<std::int32_t> begins = tree.Cut(count);
    EXPECT_EQ(begins.size(), static_cast<std::size_t>(count + 1));
    EXPECT_TRUE(std::ranges::is_sorted(begins));
    EXPECT_EQ(std::set(begins.begin(), begins.end()).size(), begins.size());
  }
}

}  // namespace
}  // namespace attendant
