// Exhaustive scans of several queries at once: each result has the same bytes
// as alone.
#include "core/shortlist/scan/shared_scan.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "core/shortlist/ivf/ivf_index.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/reference.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr double kEpsilon = 5.9604644775390625e-8;  // 2^-24
constexpr std::int64_t kDim = 40;
// Several slabs, and part of one.
constexpr std::int64_t kRows = 5300;
constexpr std::int64_t kK = 30;

// Rows without a key: individual ones, and a slab with only its first key.
std::vector<RowIndex> Keyless() {
  std::vector<RowIndex> rows;
  for (RowIndex row = 0; row < 1500; row += 97) rows.push_back(row);
  rows.push_back(2048);
  return rows;
}

const KeyTable& Keys() {
  static const KeyTable table = [] {
    KeyTable made = ClusteredKeys(kRows, kDim, 30, 1, /*norm_spread=*/3);
    for (const RowIndex row : Keyless()) {
      made.keys[row] = {};
    }
    return made;
  }();
  return table;
}

const KeyIndex& IndexOf(IndexKind kind) {
  static const std::unique_ptr<FlatIndex> flat = FlatOf(Keys());
  static const std::unique_ptr<IvfIndex> ivf =
      IvfIndex::Build(Keys().keys, kDim, ScoreKind::kDot, IvfOptions()).value();
  return kind == IndexKind::kFlat ? static_cast<const KeyIndex&>(*flat) : *ivf;
}

class RowBias : public LogitBias {
 public:
  void AddTo(const RowIndex* rows, std::int64_t n,
             float* logits) const override {
    for (std::int64_t i = 0; i < n; ++i) {
      logits[i] += 0.001f * static_cast<float>(rows[i]);
    }
  }
};

// A query of any kind that is scanned from floats, with the data that it points
// to.
class AnyQuery {
 public:
  explicit AnyQuery(std::mt19937_64& random)
      : vector_(static_cast<std::size_t>(kDim)),
        output_weight_(static_cast<std::size_t>(kDim), 0.3f),
        excluded_(kRows),
        allowed_(kRows) {
    const auto one_in = [&](std::uint64_t n) { return random() % n == 0; };
    std::normal_distribution<float> normal;
    for (float& component : vector_) component = normal(random);
    Combine(CombineKind::kUnit, 1, vector_);
    query.query = vector_;
    query.row_end = kRows;
    query.exhaustive = true;
    query.logit_factor = 1;
    if (one_in(3)) query.score_kind = ScoreKind::kCosine;
    if (one_in(9)) {
      query.score_kind = ScoreKind::kAdditive;
      query.output_weight = output_weight_;
    }
    if (one_in(3)) {
      // Some rows, few enough to be scored individually, or most.
      const std::uint64_t rate = one_in(2) ? 2 : one_in(2) ? 30 : 1000;
      for (RowIndex row = 0; row < kRows; ++row) {
        if (one_in(rate)) (rate == 1000 ? excluded_ : allowed_).Set(row);
      }
      (rate == 1000 ? query.excluded : query.allowed) =
          rate == 1000 ? &excluded_ : &allowed_;
    }
    if (one_in(5)) {
      query.row_end = static_cast<RowIndex>(random() % kRows);
    }
    if (one_in(6)) query.bias = &bias_;
    if (one_in(6)) pooled_dim = kDim;
  }

  ScanQuery query;
  std::int64_t pooled_dim = 0;

 private:
  std::vector<float> vector_;
  std::vector<float> output_weight_;
  Bitmap excluded_, allowed_;
  RowBias bias_;
};

void ExpectSameBytes(const AttentionState& a, const AttentionState& b) {
  const SoftmaxPartition& p = a.partition();
  const SoftmaxPartition& q = b.partition();
  EXPECT_EQ(p.count, q.count);
  EXPECT_EQ(p.max, q.max);
  EXPECT_EQ(p.sum, q.sum);
  EXPECT_EQ(p.sum_gap, q.sum_gap);
  EXPECT_EQ(p.sum_square, q.sum_square);
  const auto top = a.top().Sorted();
  const auto other = b.top().Sorted();
  ASSERT_EQ(RowsOf(top), RowsOf(other));
  for (std::size_t i = 0; i < top.size(); ++i) {
    EXPECT_EQ(top[i].logit, other[i].logit);
    EXPECT_EQ(top[i].similarity, other[i].similarity);
  }
  EXPECT_EQ(a.PooledValue(), b.PooledValue());
}

class SharedScanTest : public ::testing::TestWithParam<IndexKind> {
 protected:
  const KeyIndex& index() const { return IndexOf(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Kinds, SharedScanTest,
                         ::testing::Values(IndexKind::kFlat, IndexKind::kIvf));

TEST_P(SharedScanTest, EachIsTheBytesOfAScanAlone) {
  std::mt19937_64 random(2);
  // More queries than share a pass, as many as tiles are transposed for, and
  // few.
  for (const std::size_t count : {75U, 20U, 3U}) {
    std::deque<AnyQuery> queries;
    std::deque<AttentionState> states;
    std::vector<ScanTask> tasks;
    for (std::size_t i = 0; i < count; ++i) {
      AnyQuery& query = queries.emplace_back(random);
      AttentionState& state =
          states.emplace_back(kK, &kNoIds, query.pooled_dim);
      tasks.push_back({&query.query, &state});
    }
    index().ScanTogether(tasks);
    for (std::size_t i = 0; i < count; ++i) {
      SCOPED_TRACE(i);
      AttentionState alone(kK, &kNoIds, queries[i].pooled_dim);
      ASSERT_OK_AND_ASSIGN(const ScanStats stats,
                           index().Scan(queries[i].query, alone));
      ExpectSameBytes(states[i], alone);
      ASSERT_OK(tasks[i].stats);
      EXPECT_EQ(tasks[i].stats->scored_count, stats.scored_count);
      EXPECT_EQ(tasks[i].stats->scored_count, states[i].partition().count);
      EXPECT_EQ(tasks[i].stats->visited_list_count, stats.visited_list_count);
      EXPECT_TRUE(tasks[i].stats->exact);
      EXPECT_TRUE(tasks[i].stats->complete);
      EXPECT_TRUE(tasks[i].stats->results_exact);
      EXPECT_TRUE(tasks[i].stats->knows_mass);
    }
  }
}

TEST_P(SharedScanTest, AgreesWithDoubles) {
  constexpr std::size_t kQueries = 24;
  std::vector<double> keys;
  double max_norm = 0;
  for (const auto key : Keys().keys) {
    keys.insert(keys.end(), key.begin(), key.end());
    if (!key.empty()) max_norm = std::max(max_norm, Norm(key));
  }
  const auto key_count = static_cast<std::int64_t>(keys.size()) / kDim;
  const ReferenceMatrix matrix = {key_count, kDim, keys};
  const KeyTable vectors = ClusteredKeys(kQueries, kDim, 30, 1);
  std::vector<ScanQuery> queries;
  std::deque<AttentionState> states;
  std::vector<ScanTask> tasks;
  for (std::size_t q = 0; q < kQueries; ++q) {
    ScanQuery query = QueryFor(vectors.keys[q], kRows);
    query.exhaustive = true;
    query.logit_factor = 0.2;
    queries.push_back(query);
  }
  for (const ScanQuery& query : queries) {
    tasks.push_back({&query, &states.emplace_back(kK, &kNoIds)});
  }
  index().ScanTogether(tasks);
  for (std::size_t q = 0; q < kQueries; ++q) {
    ASSERT_OK(tasks[q].stats);
    const std::vector<double> vector(vectors.keys[q].begin(),
                                     vectors.keys[q].end());
    const ReferenceAnswer exact =
        AttendReference(vector, matrix, matrix, ScoreKind::kDot, 5);
    // As in flat_index_test.cc: dim + 1 roundings of a product, 2 of a logit;
    // gaps that matter are below 40.
    const double logit_error =
        0.2 * (kDim + 3) * kEpsilon * Norm(vectors.keys[q]) * max_norm;
    const double exp_error =
        2 * logit_error + std::ldexp(1.0, -20) + 40 * kEpsilon;
    EXPECT_EQ(states[q].partition().count, key_count);
    EXPECT_NEAR(*states[q].partition().LogPartition(), exact.log_partition,
                exp_error);
    std::vector<double> best = exact.logits;
    std::ranges::sort(best, std::greater<>());
    const auto top = states[q].top().Sorted();
    ASSERT_EQ(top.size(), kK);
    for (std::size_t i = 0; i < kK; ++i) {
      EXPECT_NEAR(top[i].logit, best[i], logit_error);
    }
  }
}

// Cancels when biases are read.
class CancellingBias : public LogitBias {
 public:
  explicit CancellingBias(std::atomic<bool>* flag) : flag_(flag) {}
  void AddTo(const RowIndex*, std::int64_t, float*) const override {
    flag_->store(true);
  }

 private:
  std::atomic<bool>* const flag_;
};

TEST_P(SharedScanTest, FailuresAreOnesOwn) {
  std::mt19937_64 random(3);
  const KeyTable vectors = ClusteredKeys(30, kDim, 30, 4);
  std::atomic<bool> flag = false;
  const Interrupt interrupt = {.cancelled = &flag};
  const std::atomic<bool> set = true;
  const Interrupt gone = {.cancelled = &set};
  const CancellingBias cancels(&flag);
  const std::vector<float> huge(kDim, 3e38f);
  std::vector<ScanQuery> queries;
  std::deque<AttentionState> states;
  std::vector<ScanTask> tasks;
  for (const auto vector : vectors.keys) {
    ScanQuery query = QueryFor(vector, kRows);
    query.exhaustive = true;
    queries.push_back(query);
  }
  queries[3].query = huge;
  queries[4].interrupt = &gone;
  // The scan stops within a few thousand rows.
  queries[5].interrupt = &interrupt;
  queries[5].bias = &cancels;
  queries[6].logit_factor = 1e39;
  for (const ScanQuery& query : queries) {
    tasks.push_back({&query, &states.emplace_back(kK, &kNoIds)});
  }
  index().ScanTogether(tasks);
  EXPECT_THAT(tasks[3].stats, StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("overflows")));
  EXPECT_THAT(tasks[4].stats,
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("caller")));
  EXPECT_THAT(tasks[5].stats,
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("caller")));
  EXPECT_THAT(tasks[6].stats, StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("overflows")));
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (i >= 3 && i <= 6) continue;
    ASSERT_OK(tasks[i].stats);
    AttentionState alone(kK, &kNoIds);
    ASSERT_OK(index().Scan(queries[i], alone));
    ExpectSameBytes(states[i], alone);
  }
}

}  // namespace
}  // namespace attendant
