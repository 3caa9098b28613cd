#include "core/shortlist/ivf/ivf_index.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <deque>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "core/attention/softmax/log_add.h"
#include "core/base/bitmap.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "core/shortlist/lists/list_means.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kSeed = 11;

// Minimum recall@10 against exact, on fresh queries.
constexpr double kRecallFloor = 0.95;

// All results of a scan.
struct Answer {
  ScanStats stats;
  SoftmaxPartition partition;
  std::vector<RowIndex> rows;
  std::vector<float> logits;
};

Answer AnswerOf(const KeyIndex& index, const ScanQuery& query,
                std::int64_t count) {
  AttentionState state(count, &kNoIds);
  const auto stats = index.Scan(query, state);
  EXPECT_OK(stats);
  Answer answer;
  if (stats.ok()) answer.stats = *stats;
  answer.partition = state.partition();
  for (const Candidate& c : state.top().Sorted()) {
    answer.rows.push_back(c.row);
    answer.logits.push_back(c.logit);
  }
  return answer;
}

// Three hand-made clusters far apart.
class IvfPointsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        index_,
        IvfIndex::Build(
            table_.keys, kDim, ScoreKind::kDot,
            {.list_count = 3, .target_recall = 0.01, .neighbour_count = 2}));
    ASSERT_EQ(index_->list_count(), 3);
    // Each key's neighbours are in its own cluster.
    ASSERT_EQ(index_->probe_count(), 1);
  }

  // East: rows 0, 3, 6; north: 1, 4, 7; south-west: 2, 5, 8. Row 9 has no key.
  // All lie in a plane.
  static constexpr std::int64_t kDim = 3;
  const KeyTable table_ = TableOf(
      kDim, {100, 0,   0, 0,   100, 0, -90, -90, 0, 101, 1,   0, 1, 101, 0,
             -91, -89, 0, 102, -1,  0, -1,  102, 0, -89, -91, 0, 5, 5,   0},
      /*keyless=*/{9});
  std::unique_ptr<IvfIndex> index_;
};

TEST_F(IvfPointsTest, AQueryVisitsTheListItPointsTo) {
  const std::vector<float> east = {1, 0, 0};
  const Answer answer = AnswerOf(*index_, QueryFor(east, 10), 2);
  EXPECT_THAT(answer.rows, ElementsAre(6, 3));
  EXPECT_THAT(answer.logits, ElementsAre(102, 101));
  EXPECT_EQ(answer.stats.scored_count, 3);
  EXPECT_FALSE(answer.stats.complete);
  const std::vector<float> west = {-1, 0, 0};
  EXPECT_THAT(AnswerOf(*index_, QueryFor(west, 10), 2).rows, ElementsAre(5, 2));
}

TEST_F(IvfPointsTest, AsManyListsAreVisitedAsHoldWhatIsWanted) {
  const std::vector<float> east = {1, 0.5, 0};
  const Answer answer = AnswerOf(*index_, QueryFor(east, 10), 4);
  EXPECT_EQ(answer.stats.visited_list_count, 2);
  EXPECT_THAT(answer.rows, ElementsAre(3, 6, 0, 4));
  EXPECT_EQ(AnswerOf(*index_, QueryFor(east, 10), 10).rows.size(), 9);
}

TEST_F(IvfPointsTest, AnExhaustiveScanVisitsAll) {
  const std::vector<float> east = {1, 0, 0};
  ScanQuery query = QueryFor(east, 10);
  query.exhaustive = true;
  const Answer answer = AnswerOf(*index_, query, 10);
  EXPECT_THAT(answer.rows, ElementsAre(6, 3, 0, 4, 1, 7, 8, 2, 5));
  EXPECT_TRUE(answer.stats.complete);
}

TEST_F(IvfPointsTest, KeysComeBackByRow) {
  EXPECT_EQ(index_->kind(), IndexKind::kIvf);
  for (RowIndex row = 0; row < 9; ++row) {
    EXPECT_THAT(index_->Key(row), ElementsAreArray(table_.keys[row]));
  }
  EXPECT_THAT(index_->Key(9), IsEmpty());
  ExpectKeys(*index_, table_);
}

TEST_F(IvfPointsTest, MasksTakeRowsOutOfTheSoftmax) {
  const std::vector<float> east = {1, 0, 0};
  Bitmap excluded(10), allowed(10);
  excluded.Set(6);
  allowed.Set(6);
  allowed.Set(0);
  allowed.Set(1);
  const auto rows = [&](const Bitmap* out, const Bitmap* in, bool exhaustive) {
    ScanQuery query = QueryFor(east, 10);
    query.excluded = out;
    query.allowed = in;
    query.exhaustive = exhaustive;
    const Answer answer = AnswerOf(*index_, query, 10);
    EXPECT_EQ(answer.partition.count,
              static_cast<std::int64_t>(answer.rows.size()));
    return answer.rows;
  };
  // This few rows are scored individually instead of by lists.
  EXPECT_THAT(rows(&excluded, nullptr, false),
              ElementsAre(3, 0, 4, 1, 7, 8, 2, 5));
  EXPECT_THAT(rows(nullptr, &allowed, false), ElementsAre(6, 0, 1));
  EXPECT_THAT(rows(nullptr, &allowed, true), ElementsAre(6, 0, 1));
  EXPECT_THAT(rows(&excluded, &allowed, true), ElementsAre(0, 1));
  const Bitmap none(10);
  EXPECT_THAT(rows(nullptr, &none, true), IsEmpty());
}

TEST_F(IvfPointsTest, RowsPastTheEndAreInvisible) {
  const std::vector<float> east = {1, 0, 0};
  ScanQuery query = QueryFor(east, 4);
  query.exhaustive = true;
  EXPECT_THAT(AnswerOf(*index_, query, 10).rows, ElementsAre(3, 0, 1, 2));
}

TEST_F(IvfPointsTest, InterruptsAndOverflowsAreReported) {
  AttentionState state(5, &kNoIds);
  const std::vector<float> east = {1, 0, 0};
  ScanQuery query = QueryFor(east, 10);
  const Interrupt late = {.deadline = SteadyTime::min()};
  query.interrupt = &late;
  EXPECT_THAT(
      index_->Scan(query, state),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("deadline")));
  const std::vector<float> huge = {3e38f, 0, 0};
  EXPECT_THAT(index_->Scan(QueryFor(huge, 10), state),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a logit that overflows")));
}

// Errors of codes of two components are not random.
TEST(IvfIndexTest, AllKeysOfAPlaneAreScoredFromFloats) {
  constexpr std::int64_t kRows = 8000;
  for (const std::int64_t dim : {1, 2}) {
    const KeyTable table = ClusteredKeys(kRows, dim, 50, kSeed);
    ASSERT_OK_AND_ASSIGN(const auto index,
                         IvfIndex::Build(table.keys, dim, ScoreKind::kDot, {}));
    ScanQuery query = QueryFor(table.keys[7], kRows);
    for (const double precision : {0.0, 0.02}) {
      query.goals.mass_precision = precision;
      EXPECT_TRUE(AnswerOf(*index, query, 10).stats.exact) << dim;
    }
    query.goals = {.probe_count = 1};
    EXPECT_EQ(AnswerOf(*index, query, 10).stats.visited_list_count, 1) << dim;
  }
}

// Checks everything that an index of clustered keys promises under `kind`, with
// queries from the same clusters that are not among the keys.
void ExpectGoodIndex(float norm_spread, ScoreKind kind) {
  constexpr std::int64_t kRows = 10000, kQueries = 100, kDim = 32;
  const KeyTable all_rows =
      ClusteredKeys(kRows + kQueries, kDim, 200, kSeed, norm_spread);
  KeyTable table = {kDim, {}, all_rows.keys};
  table.keys.resize(kRows);
  KeyTable queries = {kDim, {}, all_rows.keys};
  queries.keys.erase(queries.keys.begin(), queries.keys.begin() + kRows);
  SCOPED_TRACE(Name(kind));
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<IvfIndex> ivf,
      IvfIndex::Build(table.keys, table.dim, kind, {.seed = kSeed}));
  const auto flat = FlatOf(table);
  EXPECT_GE(ivf->measured_recall(), IvfOptions().target_recall);
  std::int64_t found = 0, scored = 0;
  for (const auto key : queries.keys) {
    std::vector<float> query(key.begin(), key.end());
    if (kind == ScoreKind::kCosine) Combine(CombineKind::kUnit, 1, query);
    ScanQuery scan = QueryFor(query, table.row_count());
    scan.score_kind = kind;
    scan.logit_factor = LogitFactor(kind, table.dim, 0.5);
    const Answer exact = AnswerOf(*flat, scan, 10);
    const Answer quick = AnswerOf(*ivf, scan, 10);
    const std::set<RowIndex> expected(exact.rows.begin(), exact.rows.end());
    for (const RowIndex row : quick.rows) {
      found += static_cast<std::int64_t>(expected.count(row));
    }
    scored += quick.stats.scored_count;

    scan.exhaustive = true;
    const Answer all = AnswerOf(*ivf, scan, 10);
    EXPECT_TRUE(all.stats.complete);
    EXPECT_EQ(all.stats.scored_count, exact.stats.scored_count);
    EXPECT_EQ(all.rows, exact.rows);
    EXPECT_EQ(all.logits, exact.logits) << "bit for bit";
    EXPECT_EQ(all.partition.max, exact.partition.max);
    // The same terms in another order, some relative to an earlier maximum: the
    // exps err by 2^-21 and 2^-24 a nat of the gap, here below 90.
    EXPECT_NEAR(*all.partition.LogPartition(), *exact.partition.LogPartition(),
                2 * (4.8e-7 + 90 * 6e-8));
  }
  const double recall = static_cast<double>(found) /
                        static_cast<double>(10 * queries.row_count());
  EXPECT_GE(recall, kRecallFloor) << "seed " << kSeed;
  EXPECT_LT(scored, queries.row_count() * table.row_count() / 2)
      << "visits so much that an index is no use";
}

TEST(IvfIndexTest, RecallHoldsOnClusteredKeys) {
  ExpectGoodIndex(1, ScoreKind::kDot);
  ExpectGoodIndex(1, ScoreKind::kScaledDot);
  ExpectGoodIndex(1, ScoreKind::kCosine);
}

TEST(IvfIndexTest, RecallHoldsWhenNormsSpreadTenfold) {
  ExpectGoodIndex(10, ScoreKind::kDot);
  ExpectGoodIndex(10, ScoreKind::kCosine);
}

TEST(IvfIndexTest, BuildsAreRepeatable) {
  const KeyTable table = ClusteredKeys(3000, 16, 60, kSeed);
  ASSERT_OK_AND_ASSIGN(const auto first,
                       IvfIndex::Build(table.keys, 16, ScoreKind::kDot, {}));
  // The same with any number of threads.
  ASSERT_OK_AND_ASSIGN(
      const auto second,
      IvfIndex::Build(table.keys, 16, ScoreKind::kDot, {.thread_count = 3}));
  EXPECT_EQ(first->probe_count(), second->probe_count());
  EXPECT_EQ(first->measured_recall(), second->measured_recall());
  const ScanQuery query = QueryFor(table.keys[5], 3000);
  const Answer a = AnswerOf(*first, query, 20);
  const Answer b = AnswerOf(*second, query, 20);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.partition.sum, b.partition.sum);
}

TEST(IvfIndexTest, ListsOfCosinesDoNotHangOnNorms) {
  const KeyTable table = ClusteredKeys(2000, 16, 40, kSeed);
  std::vector<float> floats = table.floats;
  for (float& component : floats) component *= 0x1p-60f;
  const KeyTable shorter = TableOf(16, std::move(floats));
  ASSERT_OK_AND_ASSIGN(const auto of_long,
                       IvfIndex::Build(table.keys, 16, ScoreKind::kCosine, {}));
  ASSERT_OK_AND_ASSIGN(
      const auto of_short,
      IvfIndex::Build(shorter.keys, 16, ScoreKind::kCosine, {}));
  for (RowIndex row = 0; row < 2000; ++row) {
    ASSERT_EQ(of_short->ListOf(row), of_long->ListOf(row)) << row;
  }
}

TEST(IvfIndexTest, ListsAreMergedAsFarAsMakesQueriesCheaper) {
  const auto list_count = [](std::int64_t rows, std::int64_t dim,
                             std::int64_t clusters, std::int64_t neighbours) {
    const KeyTable table = ClusteredKeys(rows, dim, clusters, kSeed);
    const auto index = IvfIndex::Build(table.keys, dim, ScoreKind::kDot,
                                       {.neighbour_count = neighbours})
                           .value();
    return index->list_count();
  };
  // Training starts with 4 sqrt(n) lists, or one for 16 rows, and keeps at
  // least a quarter of them.
  EXPECT_EQ(list_count(8000, 32, 50, 100), 89);
  // One list for each cluster, if neighbours are in the same cluster.
  EXPECT_EQ(list_count(20000, 32, 565, 10), 565);
  EXPECT_EQ(list_count(10, 4, 20, 100), 1);
}

TEST(IvfIndexTest, AProofIsGivenWhereARecallWouldTakeLonger) {
  constexpr std::int64_t kRows = 5000, kDim = 32;
  const auto ask = [](std::int64_t clusters, const ScanGoals& goals,
                      std::int64_t count = 100, std::int64_t rows = 5000,
                      std::int64_t unseen = 0) {
    const KeyTable table = ClusteredKeys(rows, kDim, clusters, kSeed);
    const auto index =
        IvfIndex::Build(table.keys, kDim, ScoreKind::kDot, {}).value();
    ScanQuery query = QueryFor(table.keys[5], rows - unseen);
    query.logit_factor = 0.1;
    query.goals = goals;
    return AnswerOf(*index, query, count).stats;
  };
  // Every cluster overlaps all others, so lists say little about what is near.
  EXPECT_TRUE(ask(kRows, {.recall = 0.99}).results_exact);
  EXPECT_TRUE(ask(kRows, {.recall = 0.99}).complete);
  EXPECT_FALSE(ask(kRows, {.recall = 0.5}).complete);
  EXPECT_FALSE(ask(20, {.recall = 0.99}).complete);
  // A stated probe_count is respected.
  EXPECT_EQ(ask(kRows, {.recall = 0.99, .probe_count = 60}).visited_list_count,
            60);
  // Half of the keys are spread over all lists.
  EXPECT_TRUE(ask(kRows, {.recall = 0.99}, kRows / 2).complete);
  // A stated precision has a pass of its own, or reads all floats if keys are
  // this few. If not all rows are visible, lists are visited.
  constexpr std::int64_t kManyRows = 9000;
  const ScanGoals precise = {.recall = 0.99, .mass_precision = 0.02};
  EXPECT_FALSE(ask(kManyRows, precise, 100, kManyRows).results_exact);
  EXPECT_TRUE(ask(kRows, precise).exact);
  EXPECT_FALSE(ask(kRows, {.recall = 0.99}, 100, kRows, 1).results_exact);
}

// The parameter is the number of threads, which may exceed the work there is.
class TinyIvfIndexTest : public ::testing::TestWithParam<int> {};

TEST_P(TinyIvfIndexTest, TinyAndDegenerateInputsWork) {
  // One key among rows without keys.
  const KeyTable one = TableOf(2, {1, 2, 3, 4, 5, 6}, {0, 2});
  ASSERT_OK_AND_ASSIGN(const auto single,
                       IvfIndex::Build(one.keys, 2, ScoreKind::kCosine,
                                       {.thread_count = GetParam()}));
  EXPECT_EQ(single->list_count(), 1);
  EXPECT_EQ(single->measured_recall(), 1);
  const Answer answer = AnswerOf(*single, QueryFor(one.keys[1], 3), 5);
  EXPECT_THAT(answer.rows, ElementsAre(1));
  EXPECT_TRUE(answer.stats.complete);

  // As many lists as keys; all keys equal; all zero.
  const KeyTable few = TableOf(1, {1, 2, 3, 4, 5});
  EXPECT_OK(IvfIndex::Build(few.keys, 1, ScoreKind::kDot,
                            {.list_count = 9, .thread_count = GetParam()}));
  for (const float component : {3.0f, 0.0f}) {
    const KeyTable equal = TableOf(2, std::vector<float>(2000, component));
    for (const ScoreKind kind : {ScoreKind::kDot, ScoreKind::kCosine}) {
      ASSERT_OK_AND_ASSIGN(
          const auto index,
          IvfIndex::Build(equal.keys, 2, kind, {.thread_count = GetParam()}));
      ScanQuery query = QueryFor(equal.keys[0], 1000);
      query.exhaustive = true;
      EXPECT_EQ(AnswerOf(*index, query, 3).stats.scored_count, 1000);
    }
  }
  // Norms whose squares overflow.
  const KeyTable enormous = TableOf(1, {1e38f, -1e38f, 3e38f, 1, 2, 3});
  EXPECT_OK(IvfIndex::Build(enormous.keys, 1, ScoreKind::kDot,
                            {.list_count = 2, .thread_count = GetParam()}));
}

INSTANTIATE_TEST_SUITE_P(Threads, TinyIvfIndexTest,
                         ::testing::Values(1, 3, 50));

TEST(IvfIndexTest, NoKeysIsAnError) {
  const KeyTable none = TableOf(2, {1, 2}, {0});
  EXPECT_THAT(IvfIndex::Build(none.keys, 2, ScoreKind::kDot, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("keys")));
}

TEST(IvfIndexTest, AnExceptionOfFaissBecomesAStatus) {
  // FAISS throws at non-finite numbers; callers validate them before.
  const KeyTable bad = TableOf(1, {1, 2, NAN, 4});
  EXPECT_THAT(
      IvfIndex::Build(bad.keys, 1, ScoreKind::kDot, {.list_count = 2}),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("clustering failed")));
}

TEST(IvfIndexTest, ABuildCanBeCancelled) {
  const KeyTable table = ClusteredKeys(2000, 8, 20, kSeed);
  const std::atomic<bool> cancelled = true;
  for (const int thread_count : {1, 3}) {
    EXPECT_THAT(IvfIndex::Build(
                    table.keys, 8, ScoreKind::kDot,
                    {.thread_count = thread_count, .cancelled = &cancelled}),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  }
}

std::int64_t ThreadCount() {
  std::int64_t count = 0;
  for ([[maybe_unused]] const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

TEST(IvfIndexTest, ABuildMakesNoThreads) {
  // Large enough for FAISS's and OpenMP's parallel regions. OpenMP keeps its
  // threads, so any that it started would still be there.
  const KeyTable table = ClusteredKeys(20000, 16, 100, kSeed);
  const std::int64_t before = ThreadCount();
  ASSERT_OK(IvfIndex::Build(table.keys, 16, ScoreKind::kCosine, {}));
  EXPECT_EQ(ThreadCount(), before);
}

// Keys of one catalog, and an index trained on all of them.
class IvfTrainingTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 6000;
  static constexpr std::int64_t kDim = 24;

  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        trained_, IvfIndex::Build(table_.keys, kDim, ScoreKind::kDot, {}));
    ASSERT_LT(trained_->probe_count(), trained_->list_count());
    // After merges of lists a key may be nearer to the mean of another list.
    whole_ = Part(0, kRows);
  }

  // Returns an index of rows [begin, end) with the training of all rows.
  std::unique_ptr<IvfIndex> Part(std::int64_t begin, std::int64_t end) const {
    IvfOptions options;
    options.training = trained_->training();
    auto part =
        IvfIndex::Build(std::span(table_.keys)
                            .subspan(static_cast<std::size_t>(begin),
                                     static_cast<std::size_t>(end - begin)),
                        kDim, ScoreKind::kDot, options);
    EXPECT_OK(part);
    return *std::move(part);
  }

  const KeyTable table_ = ClusteredKeys(kRows, kDim, 60, kSeed);
  std::unique_ptr<IvfIndex> trained_;
  std::unique_ptr<IvfIndex> whole_;
};

TEST_F(IvfTrainingTest, PartsVisitTheKeysThatTheWholeVisits) {
  constexpr std::int64_t kCut = 4500;
  const auto first = Part(0, kCut);
  const auto second = Part(kCut, kRows);
  EXPECT_EQ(first->training(), trained_->training());
  const KeyTable queries = ClusteredKeys(20, kDim, 60, kSeed + 1);
  const auto query_for = [&](std::span<const float> vector,
                             std::int64_t row_count) {
    ScanQuery query = QueryFor(vector, row_count);
    query.goals.probe_count = whole_->probe_count();
    return query;
  };
  for (const std::span<const float> query : queries.keys) {
    const Answer whole = AnswerOf(*whole_, query_for(query, kRows), kRows);
    std::set<RowIndex> rows(whole.rows.begin(), whole.rows.end());
    ASSERT_FALSE(whole.stats.complete);
    const Answer a = AnswerOf(*first, query_for(query, kCut), kRows);
    const Answer b = AnswerOf(*second, query_for(query, kRows - kCut), kRows);
    std::set<RowIndex> of_parts(a.rows.begin(), a.rows.end());
    for (const RowIndex row : b.rows) of_parts.insert(row + kCut);
    EXPECT_EQ(of_parts, rows);
    // The number of lists a query chooses depends on the training alone.
    const std::int64_t chosen =
        AnswerOf(*whole_, QueryFor(query, kRows), 10).stats.visited_list_count;
    for (const std::int64_t part_rows : {kCut, kRows - kCut}) {
      const auto& part = part_rows == kCut ? first : second;
      EXPECT_EQ(AnswerOf(*part, QueryFor(query, part_rows), 10)
                    .stats.visited_list_count,
                chosen);
    }
  }
}

TEST_F(IvfTrainingTest, KnownListsAreTaken) {
  const auto part = Part(0, kRows);
  std::vector<std::int32_t> known(kRows, -1);
  for (RowIndex row = 0; row < kRows; ++row) {
    EXPECT_EQ(part->ListOf(row), whole_->ListOf(row)) << row;
    // Row 7 is given another list below, to see that known lists are taken as
    // given.
    known[row] = part->ListOf(row);
  }
  known[7] = (known[7] + 1) % static_cast<std::int32_t>(part->list_count());
  known[8] = -1;
  IvfOptions options;
  options.training = whole_->training();
  options.known_lists = known;
  ASSERT_OK_AND_ASSIGN(
      const auto index,
      IvfIndex::Build(table_.keys, kDim, ScoreKind::kDot, options));
  EXPECT_EQ(index->ListOf(7), known[7]);
  EXPECT_EQ(index->ListOf(8), whole_->ListOf(8));
}

TEST_F(IvfTrainingTest, DriftIsMeasured) {
  EXPECT_DOUBLE_EQ(trained_->square_distance(),
                   trained_->trained_square_distance());
  EXPECT_EQ(trained_->trained_key_count(), kRows);
  EXPECT_NEAR(whole_->square_distance(), trained_->square_distance(),
              0.05 * trained_->square_distance());
  const auto part = Part(0, 1000);
  EXPECT_NEAR(part->square_distance(), whole_->square_distance(),
              0.1 * whole_->square_distance());
  const KeyTable others = ClusteredKeys(1000, kDim, 60, kSeed + 5);
  IvfOptions options;
  options.training = whole_->training();
  ASSERT_OK_AND_ASSIGN(
      const auto drifted,
      IvfIndex::Build(others.keys, kDim, ScoreKind::kDot, options));
  EXPECT_GT(drifted->square_distance(), 1.3 * whole_->square_distance());
}

TEST_F(IvfTrainingTest, AFewKeysAreAnsweredToo) {
  const auto part = Part(0, 5);
  const std::span<const float> query = table_.keys[2];
  ScanQuery exhaustive = QueryFor(query, 5);
  exhaustive.exhaustive = true;
  EXPECT_EQ(AnswerOf(*part, exhaustive, 10).rows.size(), 5u);
  EXPECT_LE(AnswerOf(*part, QueryFor(query, 5), 10).rows.size(), 5u);
}

// Queries that go through several indexes, one after the other.
class IvfCarryTest : public IvfTrainingTest {
 protected:
  static constexpr std::int64_t kQueries = 120;
  // Of 120 intervals that each hold with 95 %, fewer than 106 hold once in
  // 1,000 times.
  static constexpr int kMinHeld = 106;

  struct Piece {
    std::unique_ptr<KeyIndex> index;
    std::int64_t row_count = 0;
    Bitmap excluded = Bitmap(0);  // empty: none
    std::int64_t excluded_count = 0;
  };
  struct Result {
    SoftmaxPartition partition;
    double log_variance = -std::numeric_limits<double>::infinity();
    bool knows_mass = true;
    std::int64_t growing_scored_count = 0;
  };

  Piece Rows(std::int64_t begin, std::int64_t end) const {
    return {Part(begin, end), end - begin};
  }
  // The same rows in an unsealed segment.
  Piece GrowingRows(std::int64_t begin, std::int64_t end) const {
    auto index =
        std::make_unique<FlatIndex>(kDim, end - begin, trained_->training());
    for (std::int64_t row = begin; row < end; ++row) {
      index->Append(table_.keys[row]);
    }
    index->AssignLists();
    return {std::move(index), end - begin};
  }
  // Removes every `step`th row.
  static Piece Without(std::int64_t step, Piece piece) {
    piece.excluded = Bitmap(piece.row_count);
    for (RowIndex row = 0; row < piece.row_count; row += step) {
      piece.excluded.Set(row);
      ++piece.excluded_count;
    }
    return piece;
  }

  std::vector<ScanQuery> QueriesOf(const Piece& piece, std::size_t first,
                                   std::size_t count, bool exhaustive) const {
    std::vector<ScanQuery> scans;
    for (std::size_t q = first; q < first + count; ++q) {
      ScanQuery scan = QueryFor(queries_.keys[q], piece.row_count);
      scan.logit_factor = kFactor;
      scan.exhaustive = exhaustive;
      scan.eligible_count = piece.row_count - piece.excluded_count;
      if (piece.excluded_count > 0) scan.excluded = &piece.excluded;
      scans.push_back(scan);
    }
    return scans;
  }

  // Results of `count` queries scanned together.
  std::vector<Result> Ask(std::span<const Piece> pieces, std::size_t first,
                          std::size_t count, bool exhaustive = false) const {
    std::deque<AttentionState> states;
    for (std::size_t q = 0; q < count; ++q) states.emplace_back(10, &kNoIds);
    std::vector<std::unique_ptr<ScanCarry>> carries(count);
    std::vector<Result> results(count);
    const auto note = [](const ScanStats& stats, Result& result) {
      result.knows_mass &= stats.exact || stats.knows_mass;
      result.log_variance =
          2 * LogAdd(result.log_variance / 2, stats.log_variance / 2);
    };
    for (const Piece& piece : pieces) {
      const auto scans = QueriesOf(piece, first, count, exhaustive);
      std::vector<ScanTask> tasks;
      for (std::size_t q = 0; q < count; ++q) {
        tasks.push_back({&scans[q], &states[q], &carries[q]});
      }
      piece.index->ScanTogether(tasks);
      for (std::size_t q = 0; q < count; ++q) {
        EXPECT_OK(tasks[q].stats);
        note(*tasks[q].stats, results[q]);
        if (piece.index->kind() != IndexKind::kFlat) continue;
        results[q].growing_scored_count += tasks[q].stats->scored_count;
      }
    }
    for (std::size_t q = 0; q < count; ++q) {
      if (carries[q] != nullptr) {
        ScanStats stats = {.knows_mass = true};
        carries[q]->Finish(states[q], stats);
        note(stats, results[q]);
      }
      results[q].partition = states[q].partition();
    }
    return results;
  }

  static double LogSumOf(const Result& result) {
    return *result.partition.LogPartition();
  }

  // The number of queries whose log partition lies within 1.96 deviations of
  // the exact one.
  int CountHeld(std::span<const Piece> pieces) const {
    const auto guessed = Ask(pieces, 0, kQueries);
    const auto exact = Ask(pieces, 0, kQueries, /*exhaustive=*/true);
    int held = 0;
    for (std::size_t q = 0; q < guessed.size(); ++q) {
      held += Holds(guessed[q], exact[q]) ? 1 : 0;
    }
    return held;
  }

  static bool Holds(const Result& guessed, const Result& exact) {
    EXPECT_TRUE(guessed.knows_mass);
    EXPECT_EQ(guessed.partition.count, exact.partition.count);
    const double share = std::exp(guessed.log_variance / 2 - LogSumOf(guessed));
    const double spread = std::log1p(share * share);
    return std::abs(LogSumOf(guessed) - LogSumOf(exact)) <=
           1.96 * std::sqrt(spread) + spread / 2;
  }

  // Norms are about 7: a sharpness of 10.
  static constexpr double kFactor = 0.2;
  const KeyTable queries_ = ClusteredKeys(kQueries, kDim, 60, kSeed);
};

TEST_F(IvfCarryTest, MassesOfSeveralIndexesHold) {
  const Piece pieces[] = {Rows(0, 4500), Rows(4500, 5600), Rows(5600, kRows)};
  EXPECT_GE(CountHeld(pieces), kMinHeld);
}

TEST_F(IvfCarryTest, SoTheyDoOfFewerKeysThanTheTrainingHad) {
  for (const std::int64_t end : {5600, 4500, 3000, 1500}) {
    const Piece one[] = {Rows(0, end)};
    EXPECT_GE(CountHeld(one), kMinHeld) << end;
  }
}

// Keys that came after the training, in an index that is scanned alone.
TEST_F(IvfCarryTest, SoTheyDoWhereKeysLieCloserThanWhatWasLearned) {
  constexpr float kCloser = 0.8f;
  const ListMeans& means = *trained_->training()->means;
  std::vector<float> floats;
  for (RowIndex row = 0; row < kRows; ++row) {
    const float* mean = means.means.data() + trained_->ListOf(row) * kDim;
    const std::span<const float> key = table_.keys[row];
    for (std::size_t d = 0; d < key.size(); ++d) {
      floats.push_back(mean[d] + kCloser * (key[d] - mean[d]));
    }
  }
  const KeyTable table = TableOf(kDim, std::move(floats));
  IvfOptions options;
  options.training = trained_->training();
  ASSERT_OK_AND_ASSIGN(
      const auto index,
      IvfIndex::Build(table.keys, kDim, ScoreKind::kDot, options));
  int held = 0;
  for (std::size_t q = 0; q < kQueries; ++q) {
    Result results[2];
    for (const bool exhaustive : {false, true}) {
      ScanQuery query = QueryFor(queries_.keys[q], kRows);
      query.logit_factor = kFactor;
      query.exhaustive = exhaustive;
      AttentionState state(10, &kNoIds);
      ASSERT_OK_AND_ASSIGN(const ScanStats stats, index->Scan(query, state));
      results[exhaustive ? 1 : 0] = {
          .partition = state.partition(),
          .log_variance = stats.log_variance,
          .knows_mass = stats.exact || stats.knows_mass};
    }
    held += Holds(results[0], results[1]) ? 1 : 0;
  }
  EXPECT_GE(held, kMinHeld);
}

TEST_F(IvfCarryTest, SoTheyDoWhereSomeRowsAreGone) {
  const Piece some[] = {Without(9, Rows(0, 4500)), Rows(4500, 5600),
                        Without(3, Rows(5600, kRows))};
  EXPECT_GE(CountHeld(some), kMinHeld);
  // The last piece chooses its own lists, or is scored row by row.
  const Piece most[] = {Rows(0, 4500), Rows(4500, 5600),
                        Without(2, Rows(5600, kRows))};
  EXPECT_GE(CountHeld(most), kMinHeld);
}

TEST_F(IvfCarryTest, AndWhereTheSmallestComesFirst) {
  const Piece pieces[] = {Rows(5600, kRows), Rows(4500, 5600), Rows(0, 4500)};
  EXPECT_GE(CountHeld(pieces), kMinHeld);
}

TEST_F(IvfCarryTest, AndOfRowsThatAreNotSealedYet) {
  const Piece pieces[] = {Rows(0, 4500), Rows(4500, 5920),
                          Without(5, GrowingRows(5920, 5960)),
                          GrowingRows(5960, kRows)};
  EXPECT_GE(CountHeld(pieces), kMinHeld);
  std::int64_t scored = 0;
  for (const Result& result : Ask(pieces, 0, kQueries)) {
    scored += result.growing_scored_count;
  }
  EXPECT_LT(scored, kQueries * (32 + 40) / 2);
}

TEST_F(IvfCarryTest, OfManyRowsThatAreNotSealedYetAllAreScored) {
  // Each growing piece is small compared with the first, but not the two
  // together.
  const Piece pieces[] = {Rows(0, 5880), GrowingRows(5880, 5940),
                          GrowingRows(5940, kRows)};
  for (const Result& result : Ask(pieces, 0, kQueries)) {
    EXPECT_GE(result.growing_scored_count, 60);
    EXPECT_LT(result.growing_scored_count, 110);
  }
}

TEST_F(IvfCarryTest, AnIndexOfAnotherTrainingSpeaksForItself) {
  Piece other = {nullptr, 1500};
  ASSERT_OK_AND_ASSIGN(
      other.index, IvfIndex::Build(std::span(table_.keys).subspan(4500), kDim,
                                   ScoreKind::kDot, {}));
  ASSERT_NE(other.index->training(), trained_->training());
  Piece pieces[2];
  pieces[0] = Rows(0, 4500);
  pieces[1] = std::move(other);
  const auto both = Ask(pieces, 0, kQueries);
  const auto first = Ask({&pieces[0], 1}, 0, kQueries);
  const auto second = Ask({&pieces[1], 1}, 0, kQueries);
  for (std::size_t q = 0; q < both.size(); ++q) {
    EXPECT_NEAR(LogSumOf(both[q]),
                LogAdd(LogSumOf(first[q]), LogSumOf(second[q])), 1e-6)
        << "exp is of floats";
    // A carry adds the deviations of codes and estimates, where a single index
    // adds their variances; those of codes are a small part.
    EXPECT_NEAR(both[q].log_variance / 2,
                LogAdd(first[q].log_variance / 2, second[q].log_variance / 2),
                0.02);
  }
}

// Few keys that recur leave most lists empty. A query that points away from all
// keys finds the least in each: an empty list must not be taken to hold more.
TEST_F(IvfCarryTest, ListsWithoutKeysHoldNothing) {
  constexpr std::size_t kDifferent = 30;
  std::vector<float> floats;
  for (RowIndex row = 0; row < kRows; ++row) {
    const std::span<const float> key =
        table_.keys[static_cast<std::size_t>(row) % kDifferent];
    for (const float component : key) floats.push_back(10 + component);
  }
  const KeyTable table = TableOf(kDim, std::move(floats));
  IvfOptions options;
  options.list_count = 100;
  ASSERT_OK_AND_ASSIGN(
      const auto whole,
      IvfIndex::Build(table.keys, kDim, ScoreKind::kDot, options));
  options.training = whole->training();
  Piece pieces[2];
  constexpr std::int64_t kFirst = 4000;
  ASSERT_OK_AND_ASSIGN(pieces[0].index,
                       IvfIndex::Build(std::span(table.keys).first(kFirst),
                                       kDim, ScoreKind::kDot, options));
  ASSERT_OK_AND_ASSIGN(pieces[1].index,
                       IvfIndex::Build(std::span(table.keys).subspan(kFirst),
                                       kDim, ScoreKind::kDot, options));
  pieces[0].row_count = kFirst;
  pieces[1].row_count = kRows - kFirst;
  const std::vector<float> away(kDim, -1.0f);
  AttentionState state(10, &kNoIds);
  std::unique_ptr<ScanCarry> carry;
  for (const Piece& piece : pieces) {
    const ScanQuery query = QueryFor(away, piece.row_count);
    ScanTask task = {&query, &state, &carry};
    piece.index->ScanTogether({&task, 1});
    ASSERT_OK(task.stats);
  }
  ASSERT_NE(carry, nullptr);
  ScanStats stats = {.knows_mass = true};
  carry->Finish(state, stats);
  EXPECT_TRUE(stats.knows_mass);
  EXPECT_EQ(state.partition().count, kRows);
}

TEST_F(IvfCarryTest, CompanyChangesNothing) {
  const Piece pieces[] = {Without(9, Rows(0, 4500)), Rows(4500, 5930),
                          GrowingRows(5930, kRows)};
  const auto together = Ask(pieces, 0, 30);
  for (std::size_t q = 0; q < together.size(); ++q) {
    const auto alone = Ask(pieces, q, 1);
    EXPECT_EQ(alone[0].partition.sum, together[q].partition.sum) << q;
    EXPECT_EQ(alone[0].partition.max, together[q].partition.max) << q;
    EXPECT_EQ(alone[0].log_variance, together[q].log_variance) << q;
  }
}

TEST(IvfIndexTest, AllListsButOneAreNotAll) {
  const KeyTable table = ClusteredKeys(8000, 2, 50, kSeed);
  ASSERT_OK_AND_ASSIGN(const auto index,
                       IvfIndex::Build(table.keys, 2, ScoreKind::kDot, {}));
  ScanQuery query = QueryFor(table.keys[7], 8000);
  query.goals.probe_count = index->list_count() - 1;
  const Answer answer = AnswerOf(*index, query, 10);
  EXPECT_LT(answer.partition.count, 8000);
  EXPECT_FALSE(answer.stats.complete);
  EXPECT_FALSE(answer.stats.exact);
}

TEST_F(IvfPointsTest, AllListsButOneAreNotAll) {
  const std::vector<float> east = {1, 0, 0};
  ScanQuery query = QueryFor(east, 10);
  query.goals.probe_count = 2;
  const Answer answer = AnswerOf(*index_, query, 10);
  EXPECT_EQ(answer.stats.visited_list_count, 2);
  EXPECT_FALSE(answer.stats.complete);
  EXPECT_FALSE(answer.stats.exact);
}

}  // namespace
}  // namespace attendant
