#include "core/shortlist/calibration/sample_margins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/ivf/list_index.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr std::uint64_t kMarginSeed = 17;
constexpr std::int64_t kNeighbours = 20;

// The number of a list's keys expected to score more, by the normal
// distribution.
double CountAbove(const ListMeans& means, const std::vector<float>& scores,
                  double score) {
  double sum = 0;
  for (std::size_t l = 0; l < scores.size(); ++l) {
    const double count = means.counts[l];
    const double reach = means.reaches[l];
    const double product = double{scores[l]} - reach;
    if (count == 0) continue;
    if (reach <= 0) {
      sum += product > score ? count : 0;
      continue;
    }
    const double deviation = reach / std::sqrt(2 * std::log(count));
    sum +=
        count * std::erfc((score - product) / deviation / std::sqrt(2.0)) / 2;
  }
  return sum;
}

class SampleMarginsTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 6000;
  static constexpr std::int64_t kDim = 24;

  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        index_,
        IvfIndex::Build(table_.keys, kDim, ScoreKind::kDot,
                        {.neighbour_count = kNeighbours, .seed = kMarginSeed}));
    lists_ = &static_cast<const ListIndex&>(*index_).lists();
    ASSERT_OK_AND_ASSIGN(
        SampleQueries drawn,
        SampleQueries::Draw(
            lists_->key_runs(), lists_->inverse_norms,
            {.neighbour_count = kNeighbours, .seed = kMarginSeed + 1}));
    sample_ = std::make_unique<SampleQueries>(std::move(drawn));
    margins_ = std::make_unique<SampleMargins>(*lists_, *sample_, 1);
  }

  const ListMeans& means() const { return *lists_->means; }

  // The share of neighbours in lists within the margin.
  double RecallAt(float margin, bool moved) const {
    std::int64_t found = 0, all = 0;
    std::vector<float> scores;
    for (std::int64_t q = 0; q < sample_->count(); ++q) {
      means().ScoreLists(moved ? sample_->Query(q) : sample_->Key(q), scores);
      const float expected = means().ExpectedScore(scores, kNeighbours);
      const auto neighbours = moved ? sample_->Neighbours(q).first(kNeighbours)
                                    : sample_->KeyNeighbours(q);
      for (const std::int32_t position : neighbours) {
        const auto l = static_cast<std::size_t>(lists_->ListAt(position));
        found += expected - scores[l] <= margin ? 1 : 0;
        ++all;
      }
    }
    return static_cast<double>(found) / static_cast<double>(all);
  }

  const KeyTable table_ = ClusteredKeys(kRows, kDim, 300, kMarginSeed);
  std::unique_ptr<IvfIndex> index_;
  const InvertedLists* lists_ = nullptr;
  std::unique_ptr<SampleQueries> sample_;
  std::unique_ptr<SampleMargins> margins_;
};

// ExpectedScore halves the span between the best score and the least product of
// the 16 best lists 8 times. It counts over these lists only, by a distribution
// that is off by .00014, in floats.
TEST_F(SampleMarginsTest, AboutSoManyKeysAreExpectedAbove) {
  std::vector<float> scores;
  for (std::int64_t q = 0; q < 20; ++q) {
    means().ScoreLists(sample_->Query(q), scores);
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      return scores[a] > scores[b];
    });
    std::vector<float> best(scores.size(), -1e9f);
    float least = scores[order[0]];
    double key_count = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      const std::size_t l = order[i];
      best[l] = scores[l];
      least = std::min(least, scores[l] - means().reaches[l]);
      key_count += means().counts[l];
    }
    const double slack = 2e-4 * key_count;
    const double step = (scores[order[0]] - least) / 256;
    for (const double k : {5.0, 20.0, 60.0}) {
      const double score = means().ExpectedScore(scores, k);
      EXPECT_GE(CountAbove(means(), best, score), k - slack) << q << " " << k;
      EXPECT_LE(CountAbove(means(), best, score + 1.01 * step), k + slack)
          << q << " " << k;
    }
  }
}

TEST_F(SampleMarginsTest, AMarginIsTheLeastThatFindsTheShare) {
  float before = -std::numeric_limits<float>::infinity();
  for (const double recall : {0.1, 0.5, 0.8, 0.95, 0.99, 1.0}) {
    const float margin = margins_->MarginFor(recall);
    EXPECT_GE(margin, before);
    before = margin;
    EXPECT_GE(RecallAt(margin, true), recall - 1e-9);
    EXPECT_GE(RecallAt(margin, false), recall - 1e-9);
    const float less =
        std::nextafter(margin, -std::numeric_limits<float>::infinity());
    EXPECT_LT(std::min(RecallAt(less, true), RecallAt(less, false)), recall);
  }
}

TEST_F(SampleMarginsTest, VisitsAreCounted) {
  const float margin = margins_->MarginFor(0.9);
  double list_sum = 0, key_sum = 0;
  std::vector<float> scores;
  for (std::int64_t q = 0; q < sample_->count(); ++q) {
    means().ScoreLists(sample_->Query(q), scores);
    const float least = means().ExpectedScore(scores, kNeighbours) - margin;
    std::int64_t lists = 0;
    for (std::size_t l = 0; l < scores.size(); ++l) {
      if (scores[l] < least) continue;
      ++lists;
      key_sum +=
          static_cast<double>(lists_->offsets[l + 1] - lists_->offsets[l]);
    }
    list_sum += static_cast<double>(std::max<std::int64_t>(1, lists));
  }
  const auto count = static_cast<double>(sample_->count());
  const SampleMargins::Visits visits = margins_->MeanVisits(margin);
  EXPECT_NEAR(visits.list_count, list_sum / count, 1e-9 * list_sum);
  EXPECT_NEAR(visits.key_count, key_sum / count, 1e-9 * key_sum);
}

// Differences of peaks, and of margins, overflow a float here.
TEST(QueryMarginTest, AMarginOfTheGreatestNumbersIsANumber) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const QueryMargin margin = {
      .near = -kMost, .far = kMost, .far_peak = -kMost, .near_peak = kMost};
  EXPECT_EQ(margin.At(-kMost), kMost);
  EXPECT_EQ(margin.At(0), 0);
  EXPECT_EQ(margin.At(kMost), -kMost);
  // Nothing is known of such a query.
  EXPECT_EQ(margin.At(std::nanf("")), kMost);
}

TEST_F(SampleMarginsTest, ThreadsChangeNothing) {
  const SampleMargins others(*lists_, *sample_, 3);
  for (const double recall : {0.5, 0.95, 1.0}) {
    EXPECT_EQ(others.MarginFor(recall), margins_->MarginFor(recall));
  }
}

TEST_F(SampleMarginsTest, BlendsDoNotChangeTheMarginsOfKeys) {
  const SampleMargins others(*lists_, *sample_, 1,
                             SampleMargins::Kinds::kKeysAndBlends);
  for (const double recall : {0.5, 0.95, 1.0}) {
    EXPECT_EQ(others.MarginFor(recall), margins_->MarginFor(recall));
    EXPECT_GE(others.BlendMarginFor(recall), margins_->MarginFor(recall));
  }
}

// The request decides how many lists a query visits: few if one list holds all
// of its best keys.
TEST_F(SampleMarginsTest, AQueryBetweenListsVisitsMoreThanOneWithin) {
  const auto visited = [&](std::span<const float> vector, double recall) {
    ScanQuery query = QueryFor(vector, kRows);
    query.logit_factor = 0.05;
    query.goals.recall = recall;
    AttentionState state(10, &kNoIds);
    return index_->Scan(query, state).value().visited_list_count;
  };
  // A list's mean, and a direction unrelated to any list.
  std::mt19937_64 random(kMarginSeed);
  std::normal_distribution<float> normal;
  std::int64_t within = 0, between = 0;
  for (std::int64_t i = 0; i < 50; ++i) {
    within += visited(means().Mean(i % means().list_count()), 0.9);
    std::vector<float> direction(kDim);
    for (float& component : direction) component = normal(random);
    between += visited(direction, 0.9);
  }
  EXPECT_LT(2 * within, between);
  // More recall takes more lists.
  std::int64_t less = 0, more = 0;
  for (std::int64_t q = 0; q < 50; ++q) {
    less += visited(sample_->Query(q), 0.8);
    more += visited(sample_->Query(q), 0.97);
  }
  EXPECT_LT(less, more);
}

// Queries that were not learned from, drawn as the keys are: 200 queries with
// 20 neighbours each, whose recalls deviate by less than .15.
TEST_F(SampleMarginsTest, RecallHoldsOnOtherQueries) {
  constexpr std::int64_t kQueries = 200;
  const KeyTable all = ClusteredKeys(kRows + kQueries, kDim, 300, kMarginSeed);
  const auto flat = FlatOf(table_);
  for (const double recall : {0.8, 0.95}) {
    std::int64_t found = 0, visited = 0;
    for (std::int64_t q = 0; q < kQueries; ++q) {
      ScanQuery query = QueryFor(all.keys[kRows + q], kRows);
      query.logit_factor = 0.05;
      AttentionState exact(kNeighbours, &kNoIds);
      ASSERT_OK(flat->Scan(query, exact));
      query.goals.recall = recall;
      AttentionState quick(kNeighbours, &kNoIds);
      ASSERT_OK_AND_ASSIGN(const ScanStats stats, index_->Scan(query, quick));
      visited += stats.visited_list_count;
      const auto expected = RowsOf(exact.top().Sorted());
      for (const RowIndex row : RowsOf(quick.top().Sorted())) {
        found += std::ranges::count(expected, row);
      }
    }
    EXPECT_GE(static_cast<double>(found) / (kQueries * kNeighbours),
              recall - 3 * 0.15 / std::sqrt(double{kQueries}));
    // The recall is not due to visiting all lists.
    EXPECT_LT(2 * visited, kQueries * means().list_count());
  }
}

}  // namespace
}  // namespace attendant
