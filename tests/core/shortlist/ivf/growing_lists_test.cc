#include "core/shortlist/ivf/growing_lists.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "core/attention/softmax/log_add.h"
#include "core/base/bitmap.h"
#include "core/base/status.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/ivf/list_carry.h"
#include "core/shortlist/kinds/flat_index.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAreArray;

constexpr std::uint64_t kSeed = 4711;

// An index of old keys, and rows appended later.
class GrowingListsTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kDim = 24;
  static constexpr std::int64_t kOld = 6400;
  static constexpr std::int64_t kMost = kOld / 64;  // new rows served by lists
  static constexpr std::int64_t kNew = 60;
  static constexpr std::int64_t kCapacity = 300;
  static constexpr std::int64_t kBest = kCapacity;  // every scored row

  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        old_, IvfIndex::Build(Keys().first(kOld), kDim, ScoreKind::kDot, {}));
    flat_ = std::make_unique<FlatIndex>(kDim, kCapacity, old_->training());
    Append(kNew);
  }

  std::span<const std::span<const float>> Keys() const { return table_.keys; }
  std::span<const std::span<const float>> NewKeys(std::int64_t count) const {
    return Keys().subspan(kOld, static_cast<std::size_t>(count));
  }
  void Append(std::int64_t end) {
    for (; appended_ < end; ++appended_) {
      flat_->Append(Keys()[kOld + appended_]);
    }
    flat_->AssignLists();
  }

  struct Found {
    std::vector<Candidate> top;
    SoftmaxPartition partition;
    ScanStats stats;
    std::vector<std::int32_t> lists;  // that the old index chose
  };

  // What a query finds among the new rows after scanning the old index.
  Found Ask(std::span<const float> vector, ScanQuery query) const {
    AttentionState of_old(kBest, &kNoIds);
    std::unique_ptr<ScanCarry> carry;
    const ScanQuery first = QueryFor(vector, kOld);
    ScanTask task = {.query = &first, .state = &of_old, .carry = &carry};
    old_->ScanTogether({&task, 1});
    EXPECT_OK(task.stats);
    Found found;
    if (const ListCarry* lists = ListCarry::Find(carry, *old_->training())) {
      found.lists.assign(lists->lists().begin(), lists->lists().end());
    }
    AttentionState state(kBest, &kNoIds);
    query.query = vector;
    task = {.query = &query, .state = &state, .carry = &carry};
    flat_->ScanTogether({&task, 1});
    EXPECT_OK(task.stats);
    found.top = state.top().Sorted();
    found.partition = state.partition();
    found.stats = *task.stats;
    return found;
  }

  static ScanQuery NewRows(std::int64_t count) {
    ScanQuery query;
    query.row_end = static_cast<RowIndex>(count);
    query.eligible_count = count;
    return query;
  }

  // Returns, by plain loops, the rows whose keys are nearest to the mean of one
  // of these lists, except excluded rows.
  std::set<RowIndex> RowsIn(std::span<const std::int32_t> lists,
                            std::int64_t count,
                            const std::set<RowIndex>& excluded = {}) const {
    const ListMeans& means = *old_->training()->means;
    std::set<RowIndex> rows;
    for (RowIndex row = 0; row < count; ++row) {
      const auto key = NewKeys(count)[row];
      double least = std::numeric_limits<double>::infinity();
      std::int32_t nearest = -1;
      for (std::int32_t l = 0; l < means.list_count(); ++l) {
        if (!means.Promises(l)) continue;
        double distance = 0;
        for (std::size_t d = 0; d < key.size(); ++d) {
          const double gap = double{key[d]} - means.Mean(l)[d];
          distance += gap * gap;
        }
        if (distance < least) {
          least = distance;
          nearest = l;
        }
      }
      if (!excluded.contains(row) &&
          std::ranges::find(lists, nearest) != lists.end()) {
        rows.insert(row);
      }
    }
    return rows;
  }

  // Returns the list outside `lists` whose mean scores highest for the query.
  std::int32_t NextList(std::span<const float> query,
                        std::span<const std::int32_t> lists) const {
    std::vector<float> scores;
    old_->training()->means->ScoreLists(query, scores);
    for (const std::int32_t list : lists) {
      scores[list] = -std::numeric_limits<float>::infinity();
    }
    return static_cast<std::int32_t>(std::ranges::max_element(scores) -
                                     scores.begin());
  }
  // Returns rows whose keys are near to old keys of a list.
  std::unique_ptr<FlatIndex> KeysLike(std::int32_t list,
                                      std::int64_t count) const {
    std::vector<RowIndex> rows;
    for (RowIndex row = 0; row < kOld; ++row) {
      if (old_->ListOf(row) == list) rows.push_back(row);
    }
    std::mt19937_64 random(kSeed);
    std::normal_distribution<float> noise(0, 0.1f);
    auto flat = std::make_unique<FlatIndex>(kDim, count, old_->training());
    for (std::int64_t i = 0; i < count; ++i) {
      const auto from = Keys()[rows[static_cast<std::size_t>(i) % rows.size()]];
      std::vector<float> key(from.begin(), from.end());
      for (float& component : key) component += noise(random);
      flat->Append(key);
    }
    flat->AssignLists();
    return flat;
  }

  static std::set<RowIndex> SetOf(const std::vector<Candidate>& candidates) {
    const std::vector<RowIndex> rows = RowsOf(candidates);
    return {rows.begin(), rows.end()};
  }

  const KeyTable table_ = ClusteredKeys(kOld + kCapacity, kDim, 60, kSeed);
  const KeyTable queries_ = ClusteredKeys(50, kDim, 60, kSeed);
  std::unique_ptr<IvfIndex> old_;
  std::unique_ptr<FlatIndex> flat_;
  std::int64_t appended_ = 0;
};

TEST_F(GrowingListsTest, RowsAreWhereASealWouldPutThem) {
  const KeyTable spread =
      ClusteredKeys(3000, kDim, 30, kSeed, /*norm_spread=*/9);
  for (const ScoreKind kind : {ScoreKind::kDot, ScoreKind::kCosine}) {
    ASSERT_OK_AND_ASSIGN(
        const auto trained,
        IvfIndex::Build(std::span(spread.keys).first(2800), kDim, kind, {}));
    const auto rows = std::span(spread.keys).subspan(2800);
    IvfOptions options;
    options.training = trained->training();
    ASSERT_OK_AND_ASSIGN(const auto sealed,
                         IvfIndex::Build(rows, kDim, kind, options));
    FlatIndex growing(kDim, 200, trained->training());
    for (RowIndex row = 0; row < 200; ++row) {
      growing.Append(rows[row]);
      // The first rows are assigned all at once, later ones individually.
      if (row > 150) growing.AssignLists();
    }
    growing.AssignLists();
    for (RowIndex row = 0; row < 200; ++row) {
      EXPECT_EQ(growing.ListOf(row), sealed->ListOf(row)) << row;
    }
  }
}

TEST_F(GrowingListsTest, AQueryScoresTheRowsOfItsLists) {
  std::int64_t scored = 0;
  for (const auto query : queries_.keys) {
    const Found found = Ask(query, NewRows(kNew));
    ASSERT_FALSE(found.lists.empty());
    EXPECT_EQ(SetOf(found.top), RowsIn(found.lists, kNew));
    EXPECT_EQ(found.stats.scored_count,
              static_cast<std::int64_t>(found.top.size()));
    EXPECT_FALSE(found.stats.complete);
    EXPECT_FALSE(found.stats.exact);
    EXPECT_FALSE(found.stats.results_exact);
    EXPECT_FALSE(found.stats.certified);
    EXPECT_TRUE(found.stats.knows_mass);
    scored += found.stats.scored_count;
    // Each row has the same score as in an exhaustive scan.
    AttentionState all(kNew, &kNoIds);
    ScanQuery exhaustive = NewRows(kNew);
    exhaustive.query = query;
    ASSERT_OK(flat_->Scan(exhaustive, all));
    for (const Candidate& candidate : all.top().candidates()) {
      for (const Candidate& of_list : found.top) {
        if (of_list.row == candidate.row) {
          EXPECT_EQ(of_list.logit, candidate.logit);
        }
      }
    }
  }
  EXPECT_GT(scored, 0);
  EXPECT_LT(scored, kNew * 50 / 2);
}

TEST_F(GrowingListsTest, MasksAreKept) {
  Bitmap excluded(kNew);
  std::set<RowIndex> rows;
  for (RowIndex row = 0; row < kNew; row += 3) {
    excluded.Set(row);
    rows.insert(row);
  }
  for (const auto query : queries_.keys) {
    ScanQuery masked = NewRows(kNew);
    masked.excluded = &excluded;
    masked.eligible_count = kNew - static_cast<std::int64_t>(rows.size());
    const Found found = Ask(query, masked);
    EXPECT_EQ(SetOf(found.top), RowsIn(found.lists, kNew, rows));
  }
}

TEST_F(GrowingListsTest, LaterRowsChangeNothingForOlderSnapshots) {
  std::vector<Found> before;
  for (const auto query : queries_.keys) {
    before.push_back(Ask(query, NewRows(kNew)));
  }
  Append(kCapacity);
  for (std::size_t q = 0; q < before.size(); ++q) {
    const Found after = Ask(queries_.keys[q], NewRows(kNew));
    EXPECT_EQ(after.stats.scored_count, before[q].stats.scored_count);
    EXPECT_THAT(RowsOf(after.top), ElementsAreArray(RowsOf(before[q].top)));
    EXPECT_EQ(after.partition.sum, before[q].partition.sum);
  }
}

TEST_F(GrowingListsTest, ManyRowsAreAllScored) {
  Append(kCapacity);
  const Found found = Ask(queries_.keys[0], NewRows(kCapacity));
  EXPECT_EQ(found.stats.scored_count, kCapacity);
  EXPECT_TRUE(found.stats.exact);
}

TEST_F(GrowingListsTest, SoTheyAreWithoutAChoiceOfLists) {
  ScanQuery query = NewRows(kNew);
  query.query = queries_.keys[0];
  AttentionState state(kBest, &kNoIds);
  ASSERT_OK_AND_ASSIGN(const ScanStats stats, flat_->Scan(query, state));
  EXPECT_EQ(stats.scored_count, kNew);
  EXPECT_TRUE(stats.exact);
  // The number of eligible rows is not known.
  query.eligible_count = std::nullopt;
  EXPECT_TRUE(Ask(queries_.keys[0], query).stats.exact);
}

TEST_F(GrowingListsTest, SoTheyAreByAnotherTraining) {
  ASSERT_OK_AND_ASSIGN(
      const auto other,
      IvfIndex::Build(Keys().first(2000), kDim, ScoreKind::kDot, {}));
  flat_ = std::make_unique<FlatIndex>(kDim, kCapacity, other->training());
  appended_ = 0;
  Append(kNew);
  EXPECT_TRUE(Ask(queries_.keys[0], NewRows(kNew)).stats.exact);
}

TEST_F(GrowingListsTest, WhereNothingIsLeftOutNothingIsGuessed) {
  Bitmap excluded(kNew);
  for (RowIndex row = 0; row < kNew; ++row) excluded.Set(row);
  ScanQuery query = NewRows(kNew);
  query.excluded = &excluded;
  query.eligible_count = 0;
  const Found found = Ask(queries_.keys[0], query);
  EXPECT_EQ(found.stats.scored_count, 0);
  EXPECT_TRUE(found.stats.complete);
  EXPECT_TRUE(found.stats.exact);
}

TEST_F(GrowingListsTest, RowsWithoutAKeyAreInNoList) {
  FlatIndex flat(kDim, 4, old_->training());
  flat.Append({});
  flat.Append(queries_.keys[0]);
  flat.Append({});
  flat.AssignLists();
  EXPECT_EQ(flat.ListOf(0), -1);
  EXPECT_GE(flat.ListOf(1), 0);
  EXPECT_EQ(flat.ListOf(2), -1);
}

// Lets the thread sanitizer check concurrent reads; also, no reader may see a
// row beyond its snapshot.
TEST_F(GrowingListsTest, ReadersGoOnWhileRowsAreAssigned) {
  std::atomic<std::int64_t> published = kNew;
  std::atomic<bool> stopping = false;
  std::atomic<std::int64_t> turn_count = 0;
  const auto await_turns = [&](std::int64_t count) {
    while (turn_count.load() < count) std::this_thread::yield();
  };
  std::thread reader([&] {
    do {
      const std::int64_t row_end = published.load();
      const Found found = Ask(queries_.keys[0], NewRows(row_end));
      EXPECT_FALSE(found.stats.exact);
      EXPECT_EQ(SetOf(found.top), RowsIn(found.lists, row_end));
      ++turn_count;
    } while (!stopping.load());
  });
  await_turns(1);
  for (std::int64_t end = kNew + 1; end <= kMost; ++end) {
    Append(end);
    published.store(end);
    std::this_thread::yield();
  }
  // Rows that are in no snapshot yet.
  Append(kCapacity);
  // One turn that may have begun before the append, and one that has not.
  await_turns(turn_count.load() + 2);
  stopping.store(true);
  reader.join();
}

// New rows are often alike. If all of them lie in the list that a query would
// have visited next, they hold far more mass than as many other rows.
TEST_F(GrowingListsTest, MassesHoldWhereAllRowsAreInOneList) {
  constexpr double kFactor = 0.2;
  const KeyTable queries = ClusteredKeys(200, kDim, 60, kSeed);
  int held = 0;
  for (const auto vector : queries.keys) {
    AttentionState state(10, &kNoIds);
    AttentionState exact(10, &kNoIds);
    std::unique_ptr<ScanCarry> carry;
    ScanQuery query = QueryFor(vector, kOld);
    query.logit_factor = kFactor;
    ScanTask task = {.query = &query, .state = &state, .carry = &carry};
    old_->ScanTogether({&task, 1});
    ASSERT_OK(task.stats);
    const double of_codes = task.stats->log_variance;
    query.exhaustive = true;
    ASSERT_OK(old_->Scan(query, exact));
    const ListCarry* lists = ListCarry::Find(carry, *old_->training());
    ASSERT_NE(lists, nullptr);
    const auto flat = KeysLike(NextList(vector, lists->lists()), kMost);
    query = NewRows(kMost);
    query.query = vector;
    query.logit_factor = kFactor;
    task = {.query = &query, .state = &state, .carry = &carry};
    flat->ScanTogether({&task, 1});
    ASSERT_OK(task.stats);
    EXPECT_LT(task.stats->scored_count, kMost / 4);
    ScanStats stats = {.knows_mass = true};
    carry->Finish(state, stats);
    ASSERT_TRUE(stats.knows_mass);
    query.exhaustive = true;
    ASSERT_OK(flat->Scan(query, exact));
    const double guessed = *state.partition().LogPartition();
    const double deviation =
        std::exp(LogAdd(of_codes, stats.log_variance) / 2 - guessed);
    const double width = 1.96 * std::sqrt(std::log1p(deviation * deviation)) +
                         std::log1p(deviation * deviation) / 2;
    EXPECT_EQ(state.partition().count, kOld + kMost);
    held += std::abs(guessed - *exact.partition().LogPartition()) <= width;
  }
  // As many as required. If the rows were assumed to hold as much as the same
  // number of other rows, 183 would be within their intervals.
  EXPECT_GE(held, 190);
}

}  // namespace
}  // namespace attendant
