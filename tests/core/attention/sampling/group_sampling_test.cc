#include "core/attention/sampling/group_sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/chi_square.h"
#include "tests/support/slate_twin.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr double kRounding = 0x1p-52;
constexpr int kGroupDraws = 50000;

// Groups of items with these log weights. A group's mass is stated separately
// and may differ from the sum over its items.
class TestGroups : public ItemGroups {
 public:
  struct Group {
    double log_mass = 0;
    std::vector<float> log_weights;
  };

  explicit TestGroups(std::vector<Group> groups) : groups_(std::move(groups)) {
    std::uint64_t key = 0;
    for (const Group& group : groups_) {
      log_masses_.push_back(group.log_mass);
      counts_.push_back(static_cast<std::int64_t>(group.log_weights.size()));
      keys_.push_back(++key + 1000);
      first_.push_back(static_cast<std::int64_t>(item_keys_.size()));
      for (std::size_t i = 0; i < group.log_weights.size(); ++i) {
        item_keys_.push_back(item_keys_.size());
      }
    }
  }

  std::span<const double> log_masses() const override { return log_masses_; }
  std::span<const std::int64_t> item_counts() const override { return counts_; }
  std::span<const std::uint64_t> noise_keys() const override { return keys_; }
  absl::Status Open(std::size_t group, GroupItems& items) override {
    if (broken_) return absl::CancelledError("open");
    EXPECT_GT(counts_[group], 1);
    opened_.insert(group);
    items.log_weights = groups_[group].log_weights;
    items.noise_keys.assign(
        item_keys_.begin() + first_[group],
        item_keys_.begin() + first_[group] + counts_[group]);
    return absl::OkStatus();
  }

  // Probabilities of all items, group by group, from the definition.
  std::vector<double> Probabilities() const {
    double all = 0;
    for (const double log_mass : log_masses_) all += std::exp(log_mass);
    std::vector<double> probabilities;
    for (const Group& group : groups_) {
      double sum = 0;
      for (const float w : group.log_weights) sum += std::exp(double{w});
      for (const float w : group.log_weights) {
        probabilities.push_back(std::exp(group.log_mass) / all *
                                std::exp(double{w}) / sum);
      }
    }
    return probabilities;
  }

  // The items drawn, numbered group by group.
  std::vector<std::int64_t> ItemsOf(const GroupSlate& drawn) const {
    std::vector<std::int64_t> items;
    for (std::size_t d = 0; d < drawn.items.size(); ++d) {
      items.push_back(first_[drawn.slate.draws[d].index] + drawn.items[d]);
    }
    return items;
  }

  void Break() { broken_ = true; }
  const std::set<std::size_t>& opened() const { return opened_; }

 private:
  std::vector<Group> groups_;
  std::vector<double> log_masses_;
  std::vector<std::int64_t> counts_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint64_t> item_keys_;
  std::vector<std::int64_t> first_;
  std::set<std::size_t> opened_;
  bool broken_ = false;
};

// Single items among groups. No mass equals the sum over its items.
TestGroups SomeGroups() {
  return TestGroups({{.4, {0}},
                     {1.1, {.3f, -.2f, 1}},
                     {-.2, {7}},
                     {.9, {-.5f, .1f}},
                     {.2, {100, 100.5f}}});
}

std::vector<double> CountsOf(const std::vector<std::int64_t>& items,
                             std::size_t n) {
  std::vector<double> counts(n);
  for (const std::int64_t item : items) ++counts[item];
  return counts;
}

TEST(SampleGroupsWithReplacementTest, FrequenciesAreProbabilities) {
  TestGroups groups = SomeGroups();
  ASSERT_OK_AND_ASSIGN(const GroupSlate drawn,
                       SampleGroupsWithReplacement(groups, kGroupDraws, 17));
  const std::vector<double> probabilities = groups.Probabilities();
  const std::vector<std::int64_t> items = groups.ItemsOf(drawn);
  ASSERT_EQ(items.size(), kGroupDraws);
  EXPECT_GT(ChiSquarePValue(probabilities, CountsOf(items, 9)), kMinPValue);
  for (std::size_t d = 0; d < items.size(); ++d) {
    ASSERT_NEAR(drawn.slate.draws[d].log_weight,
                std::log(probabilities[items[d]]), 100 * kRounding);
  }
  EXPECT_FALSE(drawn.slate.kappa.has_value());
  double mass = 0;
  for (const double log_mass : groups.log_masses()) mass += std::exp(log_mass);
  EXPECT_NEAR(drawn.log_mass, std::log(mass), 20 * kRounding);
  ASSERT_OK_AND_ASSIGN(const GroupSlate without,
                       SampleGroupsWithoutReplacement(groups, 3, 17));
  EXPECT_NEAR(without.log_mass, std::log(mass), 20 * kRounding);
}

TEST(SampleGroupsWithReplacementTest, DrawsAreIndependent) {
  // The probability of neighbouring draws is the product of their
  // probabilities.
  TestGroups groups({{0, {0, 1}}, {.5, {0}}});
  ASSERT_OK_AND_ASSIGN(const GroupSlate drawn,
                       SampleGroupsWithReplacement(groups, kGroupDraws, 3));
  const std::vector<double> one = groups.Probabilities();
  const std::vector<std::int64_t> items = groups.ItemsOf(drawn);
  std::vector<double> counts(9);
  std::vector<double> want(9);
  for (std::size_t d = 0; d + 1 < items.size(); d += 2) {
    ++counts[3 * items[d] + items[d + 1]];
  }
  for (std::size_t i = 0; i < 9; ++i) want[i] = one[i / 3] * one[i % 3];
  EXPECT_GT(ChiSquarePValue(want, counts), kMinPValue);
}

TEST(SampleGroupsWithoutReplacementTest, SlatesHaveTheirProbabilities) {
  // Every ordered slate of the definition must occur as often as it is
  // probable.
  for (const std::size_t k : {1u, 2u, 3u}) {
    TestGroups groups(
        {{.2, {0}}, {.5, {.3f, -.2f, .1f}}, {-.1, {7}}, {.3, {-.2f, .1f}}});
    const std::map<std::vector<std::int64_t>, double> slates =
        EnumerateSlates(groups.Probabilities(), k);
    std::map<std::vector<std::int64_t>, double> frequencies;
    for (std::uint64_t seed = 0; seed < kGroupDraws; ++seed) {
      ASSERT_OK_AND_ASSIGN(const GroupSlate drawn,
                           SampleGroupsWithoutReplacement(
                               groups, static_cast<std::int64_t>(k), seed));
      const std::vector<std::int64_t> items = groups.ItemsOf(drawn);
      ++frequencies[items];
      const auto found = slates.find(items);
      ASSERT_NE(found, slates.end());
      ASSERT_NEAR(drawn.slate.log_probability, std::log(found->second),
                  200 * kRounding);
      ASSERT_TRUE(drawn.slate.kappa.has_value());
    }
    std::vector<double> probabilities;
    std::vector<double> counts;
    for (const auto& [items, probability] : slates) {
      probabilities.push_back(probability);
      counts.push_back(frequencies[items]);
    }
    EXPECT_GT(ChiSquarePValue(probabilities, counts), kMinPValue) << k;
  }
}

TEST(SampleGroupsWithoutReplacementTest, AllItemsAreDrawnInTheEnd) {
  TestGroups groups = SomeGroups();
  const std::vector<double> probabilities = groups.Probabilities();
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    ASSERT_OK_AND_ASSIGN(const GroupSlate drawn,
                         SampleGroupsWithoutReplacement(groups, 20, seed));
    const std::vector<std::int64_t> items = groups.ItemsOf(drawn);
    ASSERT_EQ(std::set(items.begin(), items.end()).size(), 9);
    ASSERT_EQ(items.size(), 9);
    double left = 1;
    for (std::size_t d = 0; d < 8; ++d) {
      const double p = probabilities[items[d]];
      // `left` is a sum of differences here, with an absolute error.
      EXPECT_NEAR(std::exp(drawn.slate.draws[d].log_weight), p / left,
                  50 * kRounding / left);
      left -= p;
    }
    EXPECT_EQ(drawn.slate.draws[8].log_weight, 0);
    EXPECT_FALSE(drawn.slate.kappa.has_value());
  }
}

TEST(SampleGroupsWithoutReplacementTest, KappaAndInclusionAreTheDefinitions) {
  // Without draws kappa is the maximum noise, a standard Gumbel variable
  // because the weights sum to 1; the same noise with one draw more gives the
  // next maximum.
  TestGroups groups = SomeGroups();
  const std::vector<double> probabilities = groups.Probabilities();
  std::vector<double> counts(20);
  std::vector<double> next_counts(20);
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    ASSERT_OK_AND_ASSIGN(const GroupSlate none,
                         SampleGroupsWithoutReplacement(groups, 0, seed));
    const double first = std::exp(-std::exp(-*none.slate.kappa));
    ++counts[static_cast<std::size_t>(20 * first)];
    ASSERT_OK_AND_ASSIGN(const GroupSlate one,
                         SampleGroupsWithoutReplacement(groups, 1, seed));
    const double p = probabilities[groups.ItemsOf(one)[0]];
    const double kappa = *one.slate.kappa;
    ASSERT_LT(kappa, *none.slate.kappa);
    // Given the first maximum, the next is a Gumbel variable of the remaining
    // mass, truncated at the first.
    const double next = std::exp(-(1 - p) * std::exp(-kappa));
    const double most = std::exp(-(1 - p) * std::exp(-*none.slate.kappa));
    ++next_counts[static_cast<std::size_t>(20 * next / most)];
    ASSERT_NEAR(std::exp(*one.slate.draws[0].log_inclusion_given_threshold),
                1 - std::exp(-p * std::exp(-kappa)), 100 * kRounding);
  }
  const std::vector<double> even(20, .05);
  EXPECT_GT(ChiSquarePValue(even, counts), kMinPValue);
  EXPECT_GT(ChiSquarePValue(even, next_counts), kMinPValue);
}

TEST(SampleGroupsWithoutReplacementTest, EstimatesByInclusionAreUnbiased) {
  TestGroups groups = SomeGroups();
  const std::vector<double> probabilities = groups.Probabilities();
  const std::vector<double> gains = {3, 1, 2, 5, 7, 4, 1, 9, 2};
  double want = 0;
  for (std::size_t i = 0; i < 9; ++i) want += probabilities[i] * gains[i];
  double sum = 0;
  double square_sum = 0;
  for (std::uint64_t seed = 0; seed < kGroupDraws; ++seed) {
    ASSERT_OK_AND_ASSIGN(const GroupSlate drawn,
                         SampleGroupsWithoutReplacement(groups, 3, seed));
    const std::vector<std::int64_t> items = groups.ItemsOf(drawn);
    double estimate = 0;
    for (std::size_t d = 0; d < items.size(); ++d) {
      const auto i = static_cast<std::size_t>(items[d]);
      estimate += probabilities[i] * gains[i] /
                  std::exp(*drawn.slate.draws[d].log_inclusion_given_threshold);
    }
    sum += estimate;
    square_sum += estimate * estimate;
  }
  const double mean = sum / kGroupDraws;
  const double error =
      std::sqrt((square_sum / kGroupDraws - mean * mean) / kGroupDraws);
  // Four standard errors; tight enough to detect a bias of a fiftieth.
  EXPECT_NEAR(mean, want, 4 * error);
  EXPECT_LT(4 * error, want / 50);
}

// Many groups of many items, whose log weights have the given deviation.
TestGroups ManyGroups(float deviation) {
  std::vector<TestGroups::Group> groups;
  std::uint64_t state = 1;
  const auto next = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(state >> 40) * 0x1p-24f - .5f;
  };
  for (int g = 0; g < 60; ++g) {
    TestGroups::Group group;
    group.log_mass = deviation * double{next()};
    for (int i = 0; i < 1 + g % 40; ++i) {
      group.log_weights.push_back(deviation * next());
    }
    groups.push_back(std::move(group));
  }
  return TestGroups(std::move(groups));
}

TEST(SampleGroupsWithoutReplacementTest, SmallerCountDrawsAPrefix) {
  // A few draws leave most noise uncomputed; drawing everything computes it
  // all.
  for (const float deviation : {1.f, 30.f, 3000.f}) {
    TestGroups groups = ManyGroups(deviation);
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      ASSERT_OK_AND_ASSIGN(const GroupSlate all,
                           SampleGroupsWithoutReplacement(groups, 10000, seed));
      const std::vector<std::int64_t> items = groups.ItemsOf(all);
      for (const std::int64_t count : {0, 1, 2, 10, 50, 300, 1000}) {
        ASSERT_OK_AND_ASSIGN(
            const GroupSlate drawn,
            SampleGroupsWithoutReplacement(groups, count, seed));
        EXPECT_EQ(groups.ItemsOf(drawn),
                  std::vector(items.begin(), items.begin() + count));
        for (std::size_t d = 0; d < drawn.items.size(); ++d) {
          EXPECT_NEAR(drawn.slate.draws[d].log_weight,
                      all.slate.draws[d]
                          .log_weight,  // Sums of some 1,200 shares, in logs.
                      2000 * kRounding * (1 + deviation));
        }
      }
    }
  }
}

TEST(SampleGroupsWithoutReplacementTest, FewGroupsAreOpened) {
  TestGroups groups = ManyGroups(1);
  ASSERT_OK(SampleGroupsWithoutReplacement(groups, 5, 1).status());
  EXPECT_LE(groups.opened().size(), 6);
  EXPECT_GE(groups.opened().size(), 1);
}

TEST(SampleGroupsTest, ExtremesHold) {
  TestGroups none({});
  EXPECT_TRUE(SampleGroupsWithReplacement(none, 3, 1)->items.empty());
  EXPECT_TRUE(SampleGroupsWithoutReplacement(none, 3, 1)->items.empty());
  // Items of negligible weight come last, with their own weights.
  TestGroups far({{-1e4, {0, 0}}, {1e4, {0, -3e4f}}, {-1e4, {5}}});
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    ASSERT_OK_AND_ASSIGN(const GroupSlate drawn,
                         SampleGroupsWithoutReplacement(far, 5, seed));
    const std::vector<std::int64_t> items = far.ItemsOf(drawn);
    EXPECT_EQ(items[0], 2);
    EXPECT_EQ(items[4], 3);
    EXPECT_NEAR(drawn.slate.draws[1].log_weight,
                std::log(items[1] == 4 ? .5 : .25), 1e-11);
    ASSERT_OK_AND_ASSIGN(const GroupSlate again,
                         SampleGroupsWithReplacement(far, 20, seed));
    for (const std::int64_t item : far.ItemsOf(again)) EXPECT_EQ(item, 2);
  }
}

TEST(SampleGroupsTest, ErrorsOfOpeningEndTheDraw) {
  TestGroups groups = ManyGroups(1);
  groups.Break();
  EXPECT_THAT(SampleGroupsWithReplacement(groups, 5, 1).status(),
              StatusIs(absl::StatusCode::kCancelled, ::testing::_));
  EXPECT_THAT(SampleGroupsWithoutReplacement(groups, 5, 1).status(),
              StatusIs(absl::StatusCode::kCancelled, ::testing::_));
}

}  // namespace
}  // namespace attendant
