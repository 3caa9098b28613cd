#include "core/shortlist/kinds/flat_index.h"

#include <faiss/IndexFlat.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

#include "core/base/status.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/reference.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kEpsilon = 5.9604644775390625e-8;  // 2^-24

// Hand-made points. Row 0 is east, row 1 north, row 2 far north-east, row 4 the
// origin; row 3 has no key.
class FlatPointsTest : public ::testing::Test {
 protected:
  FlatPointsTest() {
    for (const auto key : table_.keys) index_.Append(key);
  }

  ScanQuery East() const { return QueryFor(east_, 5); }

  const std::vector<float> east_ = {1, 0};
  const KeyTable table_ =
      TableOf(2, {1, 0, 0, 2, 3, 3, 9, 9, 0, 0}, /*keyless=*/{3});
  FlatIndex index_{2, 8};
};

TEST_F(FlatPointsTest, DotRanksByProjection) {
  AttentionState state(3, &kNoIds);
  ASSERT_OK_AND_ASSIGN(const ScanStats stats, index_.Scan(East(), state));
  EXPECT_EQ(stats.scored_count, 4);
  EXPECT_TRUE(stats.complete);
  const auto top = state.top().Sorted();
  EXPECT_THAT(RowsOf(top), ElementsAre(2, 0, 1));
  EXPECT_EQ(top[0].logit, 3);
  EXPECT_EQ(top[1].logit, 1);
  EXPECT_EQ(top[2].logit, 0);
}

TEST_F(FlatPointsTest, CosineForgetsLength) {
  ScanQuery query = East();
  query.score_kind = ScoreKind::kCosine;
  query.logit_factor = 10;
  AttentionState state(4, &kNoIds);
  ASSERT_OK(index_.Scan(query, state));
  const auto top = state.top().Sorted();
  EXPECT_THAT(RowsOf(top), ElementsAre(0, 2, 1, 4));
  EXPECT_EQ(top[0].similarity, 1);
  EXPECT_EQ(top[0].logit, 10);
  EXPECT_THAT(top[1].similarity, FloatEq(std::sqrt(0.5f)));
  EXPECT_EQ(top[3].similarity, 0) << "the zero key";
}

TEST_F(FlatPointsTest, KeysComeBack) {
  EXPECT_EQ(index_.kind(), IndexKind::kFlat);
  EXPECT_EQ(index_.dim(), 2);
  EXPECT_THAT(index_.Key(2), ElementsAre(3, 3));
  EXPECT_THAT(index_.Key(3), IsEmpty());
  EXPECT_EQ(index_.memory_bytes(), 5 * (2 * 4 + 4));
}

TEST(FlatIndexTest, RowsWithoutAKeyTakeNoMemoryForOne) {
  constexpr std::int64_t kDim = 8192;
  FlatIndex index(kDim, 400);
  for (int i = 0; i < 100; ++i) index.Append({});
  EXPECT_EQ(index.memory().keys, 0);
  EXPECT_EQ(index.memory().index, 100 * 4);
  const std::vector<float> key(kDim, 1);
  index.Append(key);
  for (int i = 0; i < 100; ++i) index.Append({});
  index.Append(key);
  // Plus whatever else lies in their pages.
  EXPECT_NEAR(index.memory().keys, 2 * kDim * 4, 3 * sysconf(_SC_PAGESIZE));
}

TEST_F(FlatPointsTest, RowsPastTheEndAreInvisible) {
  ScanQuery query = East();
  query.row_end = 2;
  AttentionState state(5, &kNoIds);
  ASSERT_OK_AND_ASSIGN(const ScanStats stats, index_.Scan(query, state));
  EXPECT_EQ(stats.scored_count, 2);
  EXPECT_THAT(RowsOf(state.top().Sorted()), ElementsAre(0, 1));
}

TEST_F(FlatPointsTest, MasksTakeRowsOutOfTheSoftmax) {
  Bitmap excluded(5), allowed(5);
  excluded.Set(2);
  allowed.Set(0);
  allowed.Set(2);
  allowed.Set(3);
  const auto rows = [&](const Bitmap* out, const Bitmap* in) {
    ScanQuery query = East();
    query.excluded = out;
    query.allowed = in;
    AttentionState state(5, &kNoIds);
    EXPECT_OK(index_.Scan(query, state));
    const auto found = RowsOf(state.top().Sorted());
    EXPECT_EQ(state.partition().count, static_cast<std::int64_t>(found.size()));
    return found;
  };
  EXPECT_THAT(rows(nullptr, nullptr), ElementsAre(2, 0, 1, 4));
  EXPECT_THAT(rows(&excluded, nullptr), ElementsAre(0, 1, 4));
  EXPECT_THAT(rows(nullptr, &allowed), ElementsAre(2, 0));
  EXPECT_THAT(rows(&excluded, &allowed), ElementsAre(0));
  const Bitmap none(5);
  EXPECT_THAT(rows(nullptr, &none), IsEmpty());
  // Rows past the end of a bitmap are not in it.
  const Bitmap shorter(1);
  EXPECT_THAT(rows(&shorter, nullptr), ElementsAre(2, 0, 1, 4));
  EXPECT_THAT(rows(nullptr, &shorter), IsEmpty());
}

TEST_F(FlatPointsTest, PoolsValuesAndKeysInTheirPlace) {
  // Row 0 has its own value; row 1 pools its key.
  class OneValue : public ValueSource {
   public:
    const float* ValueOf(RowIndex row) const override {
      return row == 0 ? value : nullptr;
    }
    const float value[2] = {-8, 16};
  };
  const OneValue values;
  ScanQuery query = East();
  query.row_end = 2;
  query.logit_factor = std::log(3.0);  // weights 3/4 and 1/4
  AttentionState keys_pooled(1, &kNoIds, 2);
  ASSERT_OK(index_.Scan(query, keys_pooled));
  EXPECT_THAT(keys_pooled.PooledValue(),
              ElementsAre(::testing::FloatNear(0.75f, 1e-6f),
                          ::testing::FloatNear(0.5f, 1e-6f)));
  query.values = &values;
  AttentionState pooled(1, &kNoIds, 2);
  ASSERT_OK(index_.Scan(query, pooled));
  EXPECT_THAT(pooled.PooledValue(),
              ElementsAre(::testing::FloatNear(-6, 1e-5f),
                          ::testing::FloatNear(12.5f, 1e-5f)));
}

TEST_F(FlatPointsTest, OverflowingLogitsAreTheCallersError) {
  const std::vector<float> huge = {3e38f, 0};
  AttentionState state(5, &kNoIds);
  const auto overflow = index_.Scan(QueryFor(huge, 5), state);
  EXPECT_THAT(overflow, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("a logit that overflows")));
  EXPECT_EQ(ReasonOf(overflow.status()), "LOGIT_OVERFLOW");

  ScanQuery sharp = East();
  sharp.logit_factor = 1e39;
  EXPECT_THAT(index_.Scan(sharp, state),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a logit that overflows")));

  // The overflowing row is masked, so its logit does not exist.
  Bitmap excluded(5);
  excluded.Set(2);
  ScanQuery masked = QueryFor(huge, 5);
  masked.excluded = &excluded;
  AttentionState fresh(5, &kNoIds);
  EXPECT_OK(index_.Scan(masked, fresh));
}

TEST_F(FlatPointsTest, InterruptsStopAScan) {
  AttentionState state(5, &kNoIds);
  ScanQuery query = East();
  std::atomic<bool> flag = true;
  const Interrupt cancelled = {.cancelled = &flag};
  query.interrupt = &cancelled;
  EXPECT_THAT(index_.Scan(query, state),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("caller")));
  const Interrupt late = {.deadline = SteadyTime::min()};
  query.interrupt = &late;
  EXPECT_THAT(
      index_.Scan(query, state),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("deadline")));
}

// Cancels when the value of row 100 is read.
class CancellingValues : public ValueSource {
 public:
  explicit CancellingValues(std::atomic<bool>* flag) : flag_(flag) {}
  const float* ValueOf(RowIndex row) const override {
    last_row = row;
    if (row == 100) flag_->store(true);
    return nullptr;
  }
  mutable RowIndex last_row = 0;

 private:
  std::atomic<bool>* const flag_;
};

TEST(FlatIndexTest, InterruptsAreSeenWithinAFewThousandRows) {
  const KeyTable table = ClusteredKeys(20000, 2, 1, 1);
  const auto index = FlatOf(table);
  std::atomic<bool> flag = false;
  const Interrupt interrupt = {.cancelled = &flag};
  const CancellingValues values(&flag);
  const std::vector<float> origin = {0, 0};
  ScanQuery query = QueryFor(origin, 20000);
  query.interrupt = &interrupt;
  query.values = &values;
  AttentionState state(5, &kNoIds, 2);
  EXPECT_THAT(index->Scan(query, state),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("caller")));
  EXPECT_LT(values.last_row, 8192);
}

TEST(FlatIndexTest, AgreesWithFaissOnTheTop) {
  constexpr std::int64_t kDim = 37;
  constexpr std::int64_t kCount = 10;
  const KeyTable table = ClusteredKeys(3000, kDim, 50, 2);
  const auto index = FlatOf(table);
  faiss::IndexFlatIP faiss_index(kDim);
  faiss_index.add(table.row_count(), table.floats.data());
  const KeyTable queries = ClusteredKeys(20, kDim, 5, 3);
  for (const auto query : queries.keys) {
    AttentionState state(kCount, &kNoIds);
    ASSERT_OK(index->Scan(QueryFor(query, table.row_count()), state));
    const auto top = state.top().Sorted();
    float similarities[kCount];
    faiss::Index::idx_t rows[kCount];
    faiss_index.search(1, query.data(), kCount, similarities, rows);
    for (std::size_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(top[i].row, rows[i]);
      // Both err by at most (dim + 1) roundings of the terms.
      const double bound = 2 * (kDim + 1) * kEpsilon * Norm(query) *
                           Norm(table.keys[top[i].row]);
      EXPECT_NEAR(top[i].similarity, similarities[i], bound);
    }
  }
}

TEST(FlatIndexTest, AgreesWithTheReferenceForEveryScoreKind) {
  constexpr std::int64_t kDim = 19;
  constexpr std::int64_t kRows = 2500;  // several blocks
  const KeyTable table = ClusteredKeys(kRows, kDim, 10, 4, /*norm_spread=*/10);
  const auto index = FlatOf(table);
  const ReferenceMatrix keys = {
      kRows, kDim, {table.floats.begin(), table.floats.end()}};
  double max_norm = 0;
  for (const auto key : table.keys) max_norm = std::max(max_norm, Norm(key));
  for (const ScoreKind kind :
       {ScoreKind::kDot, ScoreKind::kScaledDot, ScoreKind::kCosine}) {
    std::vector<float> query(table.keys[7].begin(), table.keys[7].end());
    Combine(CombineKind::kUnit, 1, query);
    const double temperature = kind == ScoreKind::kCosine ? 0.1 : 2;
    const std::vector<double> exact_query(query.begin(), query.end());
    const ReferenceAnswer exact =
        AttendReference(exact_query, keys, keys, kind, temperature);

    ScanQuery scan = QueryFor(query, kRows);
    scan.score_kind = kind;
    scan.logit_factor = LogitFactor(kind, kDim, temperature);
    AttentionState state(100, &kNoIds, kDim);
    ASSERT_OK(index->Scan(scan, state));

    // A similarity: dim + 1 roundings of terms that sum to at most |q| |k|.
    // Under COSINE |k| is 1 and there are 4 more (the inverse norm, the
    // product, and the query, whose norm is 1 within a rounding). The logit: 2
    // more.
    const double norm = kind == ScoreKind::kCosine ? 1 : max_norm;
    const double similarity_error = (kDim + 5) * kEpsilon * norm;
    const double logit_error =
        scan.logit_factor * (similarity_error + 2 * kEpsilon * norm);
    for (const Candidate& c : state.top().Sorted()) {
      const auto row = static_cast<std::size_t>(c.row);
      EXPECT_NEAR(c.similarity, exact.similarities[row], similarity_error);
      EXPECT_NEAR(c.logit, exact.logits[row], logit_error);
    }
    // Every exp errs by the logits' error and the kernels'. Gaps that matter
    // are below 40; the rest weighs less than e^-40.
    const double exp_error =
        2 * logit_error + std::ldexp(1.0, -21) + 40 * kEpsilon;
    EXPECT_NEAR(*state.partition().LogPartition(), exact.log_partition,
                exp_error);
    EXPECT_NEAR(*state.partition().Entropy(), exact.entropy,
                2 * 40 * exp_error);
    EXPECT_NEAR(state.partition().EffectiveCount(), exact.effective_count,
                4 * exp_error * exact.effective_count);
    const auto pooled = state.PooledValue();
    for (std::size_t d = 0; d < kDim; ++d) {
      EXPECT_NEAR(pooled[d], exact.pooled[d], 2.5 * exp_error * max_norm);
    }
  }
}

TEST(FlatIndexTest, MaskedScanEqualsAScanOfTheRest) {
  constexpr std::int64_t kDim = 9;
  const KeyTable table = ClusteredKeys(3000, kDim, 10, 5);
  const auto index = FlatOf(table);
  std::mt19937 random(6);
  Bitmap excluded(3000);
  std::vector<float> rest;
  std::vector<RowIndex> rest_rows;
  for (RowIndex row = 0; row < 3000; ++row) {
    if (random() % 3 == 0) {
      excluded.Set(row);
      continue;
    }
    const auto key = table.keys[row];
    rest.insert(rest.end(), key.begin(), key.end());
    rest_rows.push_back(row);
  }
  const KeyTable rest_table = TableOf(kDim, rest);
  const auto rest_index = FlatOf(rest_table);
  ScanQuery query = QueryFor(table.keys[0], 3000);
  query.excluded = &excluded;
  AttentionState masked(50, &kNoIds);
  ASSERT_OK_AND_ASSIGN(const ScanStats stats, index->Scan(query, masked));
  AttentionState alone(50, &kNoIds);
  ASSERT_OK(
      rest_index->Scan(QueryFor(table.keys[0], rest_table.row_count()), alone));
  EXPECT_EQ(stats.scored_count, rest_table.row_count());
  // Eligible rows fill the blocks identically, so the bytes are the same.
  EXPECT_EQ(masked.partition().sum, alone.partition().sum);
  EXPECT_EQ(masked.partition().max, alone.partition().max);
  const auto masked_top = masked.top().Sorted();
  const auto alone_top = alone.top().Sorted();
  ASSERT_EQ(masked_top.size(), alone_top.size());
  for (std::size_t i = 0; i < masked_top.size(); ++i) {
    EXPECT_EQ(masked_top[i].row, rest_rows[alone_top[i].row]);
    EXPECT_EQ(masked_top[i].logit, alone_top[i].logit);
  }
}

TEST(FlatIndexTest, ReadersScanWhileTheWriterAppends) {
  constexpr std::int64_t kRows = 4000;
  constexpr std::int64_t kDim = 8;
  FlatIndex index(kDim, kRows);
  std::atomic<RowIndex> published = 0;
  std::thread writer([&] {
    std::vector<float> key(kDim);
    for (RowIndex row = 0; row < kRows; ++row) {
      key[0] = static_cast<float>(row);
      index.Append(row % 10 == 9 ? std::span<const float>() : key);
      published.store(row + 1, std::memory_order_release);
    }
  });
  const auto read = [&] {
    const std::vector<float> query = {1, 0, 0, 0, 0, 0, 0, 0};
    RowIndex row_end = 0;
    while (row_end < kRows) {
      row_end = published.load(std::memory_order_acquire);
      AttentionState state(1, &kNoIds);
      const auto stats = index.Scan(QueryFor(query, row_end), state);
      ASSERT_OK(stats);
      ASSERT_EQ(stats->scored_count, row_end - row_end / 10);
      if (row_end == 0) continue;
      // The greatest key is that of the last row with a key.
      const RowIndex last = row_end % 10 == 0 ? row_end - 2 : row_end - 1;
      ASSERT_EQ(state.top().Sorted()[0].row, last);
      ASSERT_EQ(state.partition().max, static_cast<float>(last));
    }
  };
  std::thread reader(read);
  read();
  reader.join();
  writer.join();
}

}  // namespace
}  // namespace attendant
