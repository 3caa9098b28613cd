// The recall asked for also holds for queries that lie between keys, such as
// the sum of a customer's purchases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "core/attention/softmax/state.h"
#include "core/base/bitmap.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr std::int64_t kRows = 30000;
constexpr std::int64_t kDim = 48;
constexpr std::int64_t kClusters = 200;
constexpr std::int64_t kK = 100;
constexpr int kQueries = 60;

// Clusters so tight that each key's neighbours are in one list.
KeyTable TightClusters(std::int64_t cluster_count) {
  std::mt19937_64 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> centres(static_cast<std::size_t>(cluster_count * kDim));
  for (float& component : centres) component = normal(random);
  std::vector<float> floats;
  for (std::int64_t r = 0; r < kRows; ++r) {
    const auto centre = static_cast<std::size_t>(r % cluster_count * kDim);
    for (std::size_t d = 0; d < kDim; ++d) {
      floats.push_back(centres[centre + d] + 0.5f * normal(random));
    }
  }
  return TableOf(kDim, std::move(floats));
}

struct Wanted {
  std::int64_t k = kK;
  const Bitmap* allowed = nullptr;
};

class HistoryRecallTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        index_, IvfIndex::Build(table_.keys, kDim, ScoreKind::kCosine, {}));
  }

  // Returns the normalised sum of random keys.
  std::vector<float> History(int key_count) {
    return History(table_, key_count);
  }
  std::vector<float> History(const KeyTable& table, int key_count) {
    std::vector<float> sum(kDim);
    for (int i = 0; i < key_count; ++i) {
      const std::span<const float> key =
          table.keys[random_() % static_cast<std::uint64_t>(kRows)];
      const auto norm = static_cast<float>(Norm(key));
      for (std::size_t d = 0; d < kDim; ++d) sum[d] += key[d] / norm;
    }
    return sum;
  }

  struct Found {
    std::vector<RowIndex> rows;  // ascending
    std::int64_t list_count = 0;
  };
  Found Scan(std::span<const float> vector, const Wanted& wanted, double recall,
             bool exhaustive) {
    ScanQuery query = QueryFor(vector, kRows);
    query.score_kind = ScoreKind::kCosine;
    query.goals.recall = recall;
    query.exhaustive = exhaustive;
    query.allowed = wanted.allowed;
    AttentionState state(wanted.k, &kNoIds);
    const auto stats = index_->Scan(query, state);
    EXPECT_OK(stats);
    Found found = {.rows = RowsOf(state.top().Sorted()),
                   .list_count = stats->visited_list_count};
    std::ranges::sort(found.rows);
    return found;
  }

  struct Tally {
    double recall = 0;
    double list_count = 0;
  };
  Tally Ask(int key_count, double recall, const Wanted& wanted = {}) {
    Tally tally;
    for (int q = 0; q < kQueries; ++q) {
      const std::vector<float> history = History(key_count);
      const Found found = Scan(history, wanted, recall, /*exhaustive=*/false);
      const Found exact = Scan(history, wanted, 0, /*exhaustive=*/true);
      std::vector<RowIndex> both;
      std::ranges::set_intersection(found.rows, exact.rows,
                                    std::back_inserter(both));
      tally.recall += static_cast<double>(both.size()) /
                      (static_cast<double>(exact.rows.size()) * kQueries);
      tally.list_count += static_cast<double>(found.list_count) / kQueries;
    }
    return tally;
  }

  const KeyTable table_ = TightClusters(kClusters);
  std::unique_ptr<IvfIndex> index_;
  std::mt19937_64 random_{5};
};

TEST_F(HistoryRecallTest, SumsOfKeysFindWhatIsAskedFor) {
  for (const double recall : {0.9, 0.95, 0.99}) {
    for (const int key_count : {1, 2, 3, 5}) {
      // A mean of 60 queries, whose recalls deviate by up to .15.
      EXPECT_GE(Ask(key_count, recall).recall, recall - 0.04)
          << key_count << " keys, asked for " << recall;
    }
  }
}

// Margins are learned for the best 100.
TEST_F(HistoryRecallTest, SumsOfKeysFindMoreThanMarginsAreLearnedFor) {
  for (const double recall : {0.85, 0.95}) {
    for (const std::int64_t k : {110, 200, 1000}) {
      for (const int key_count : {1, 2, 5}) {
        EXPECT_GE(Ask(key_count, recall, {.k = k}).recall, recall - 0.04)
            << k << " of " << key_count << " keys, asked for " << recall;
      }
    }
  }
}

TEST_F(HistoryRecallTest, SumsOfKeysFindWhatIsAskedForBehindAMask) {
  for (const std::uint64_t one_in : {2, 3, 6}) {
    Bitmap allowed(kRows);
    std::mt19937_64 random(6);
    for (RowIndex row = 0; row < kRows; ++row) {
      if (random() % one_in == 0) allowed.Set(row);
    }
    for (const std::int64_t k : {20, 100, 200}) {
      for (const int key_count : {1, 2, 5}) {
        const Tally tally = Ask(key_count, 0.95, {.k = k, .allowed = &allowed});
        EXPECT_GE(tally.recall, 0.95 - 0.04)
            << k << " of " << key_count << " keys, one row in " << one_in;
      }
    }
  }
}

// The first segment decides that no key may be lost to the errors of codes, and
// the second must do as it does. Lists are so great that 4 bits are read.
TEST_F(HistoryRecallTest, EverySegmentKeepsAllKeysOfAFarQuery) {
  constexpr std::int64_t kFirst = 20000;
  constexpr std::int64_t kFew = 20;
  constexpr std::int64_t kWanted = 30;
  constexpr double kRecall = 0.6;
  const KeyTable table = TightClusters(kFew);
  ASSERT_OK_AND_ASSIGN(const auto all,
                       IvfIndex::Build(table.keys, kDim, ScoreKind::kCosine,
                                       {.list_count = kFew}));
  const IvfOptions options = {.training = all->training()};
  // One list finds nearly all of a key's best.
  ASSERT_GT(options.training->calibration.SpareRecall(kRecall), 0.1);
  const std::span<const std::span<const float>> keys = table.keys;
  std::vector<std::unique_ptr<IvfIndex>> segments(2);
  ASSERT_OK_AND_ASSIGN(
      segments[0],
      IvfIndex::Build(keys.first(kFirst), kDim, ScoreKind::kCosine, options));
  ASSERT_OK_AND_ASSIGN(
      segments[1],
      IvfIndex::Build(keys.subspan(kFirst), kDim, ScoreKind::kCosine, options));
  for (int q = 0; q < kQueries; ++q) {
    const std::vector<float> history = History(table, 5);
    std::unique_ptr<ScanCarry> carry;
    const auto scan = [&](std::size_t segment, bool together) {
      ScanQuery query =
          QueryFor(history, segment == 0 ? kFirst : kRows - kFirst);
      query.score_kind = ScoreKind::kCosine;
      query.goals.recall = kRecall;
      AttentionState state(kWanted, &kNoIds);
      ScanTask task = {.query = &query, .state = &state};
      if (together) task.carry = &carry;
      segments[segment]->ScanTogether({&task, 1});
      EXPECT_OK(task.stats);
      return RowsOf(state.top().Sorted());
    };
    scan(0, /*together=*/true);
    const std::vector<RowIndex> alone = scan(1, /*together=*/false);
    EXPECT_EQ(alone.size(), kWanted);
    EXPECT_EQ(scan(1, /*together=*/true), alone) << "history " << q;
  }
}

TEST_F(HistoryRecallTest, AKeyAloneVisitsFewLists) {
  const Tally one = Ask(1, 0.95);
  const Tally five = Ask(5, 0.95);
  EXPECT_LT(one.list_count, 0.75 * five.list_count);
}

TEST_F(HistoryRecallTest, AQueryAsFarAsFewKeysIsFar) {
  const Calibration& calibration = index_->training()->calibration;
  const QueryMargin margin = *calibration.MarginFor(0.95);
  const float far = calibration.far_peak;
  const float near = calibration.near_peak;
  ASSERT_LT(far, near);
  EXPECT_EQ(margin.At(far - 1), margin.far);
  EXPECT_EQ(margin.At(far), margin.far);
  EXPECT_NEAR(margin.FarnessOf((far + near) / 2), 0.5, 1e-4);
  EXPECT_EQ(margin.At(near), margin.near);
  EXPECT_EQ(margin.At(near + 1), margin.near);
  EXPECT_GT(margin.far, margin.near);
  for (const double recall : {0.5, 0.9, 1.0}) {
    const auto of_recall = calibration.MarginFor(recall);
    ASSERT_TRUE(of_recall.has_value());
    EXPECT_GE(of_recall->far, of_recall->near) << recall;
  }
}

}  // namespace
}  // namespace attendant
