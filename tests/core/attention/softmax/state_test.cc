#include "core/attention/softmax/state.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/attention/softmax/score.h"
#include "tests/support/reference.h"

namespace attendant {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// Relative error of one e = exp(logit - max), from the kernels' contract, for
// gaps up to `gap`. Raising max adds roundings of doubles, which the factor 2
// covers.
double ExpTolerance(double gap) {
  return 2 * (std::ldexp(1.0, -21) + gap * std::ldexp(1.0, -24));
}

// Weight of a logit, computed from the partition.
double WeightOf(const SoftmaxPartition& partition, float logit) {
  return std::exp(logit - *partition.LogPartition());
}

// Ids in the order of rows.
class RowIds : public IdResolver {
 public:
  RowIds() {
    for (int row = 0; row < 3000; ++row) {
      ids_.push_back(std::to_string(10000 + row));
    }
  }
  absl::string_view IdOf(std::int32_t, RowIndex row) const override {
    return ids_[row];
  }

 private:
  std::vector<std::string> ids_;
};

// Rows with logits and 3-D values.
struct Rows {
  std::vector<float> logits;
  std::vector<float> values;
  std::vector<RowIndex> rows;

  static constexpr std::size_t kValueDim = 3;

  Rows(std::size_t n, float deviation, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < n; ++i) {
      logits.push_back(deviation * normal(random));
      rows.push_back(static_cast<RowIndex>(i));
      for (std::size_t d = 0; d < kValueDim; ++d) {
        values.push_back(normal(random));
      }
    }
  }

  // Adds rows [begin, end) as one block.
  void AddTo(AttentionState& state, std::size_t begin, std::size_t end) const {
    std::vector<const float*> pointers;
    for (std::size_t i = begin; i < end; ++i) {
      pointers.push_back(values.data() + i * kValueDim);
    }
    const std::size_t n = end - begin;
    const auto block = std::span(logits).subspan(begin, n);
    state.Add(0, std::span(rows).subspan(begin, n), block, block, pointers);
  }
};

class StateTest : public ::testing::Test {
 protected:
  AttentionState Empty(std::int64_t k = 5) const {
    return AttentionState(k, &ids_, Rows::kValueDim);
  }
  AttentionState StateOf(const Rows& rows, std::size_t begin, std::size_t end,
                         std::int64_t k = 5) const {
    AttentionState state = Empty(k);
    if (begin < end) rows.AddTo(state, begin, end);
    return state;
  }

  static void ExpectSame(const SoftmaxPartition& a, const SoftmaxPartition& b,
                         double tolerance) {
    EXPECT_EQ(a.count, b.count);
    EXPECT_EQ(a.max, b.max);
    EXPECT_NEAR(*a.LogPartition(), *b.LogPartition(), tolerance);
    EXPECT_NEAR(a.sum_gap, b.sum_gap, 2 * tolerance * std::abs(a.sum_gap));
    EXPECT_NEAR(a.sum_square, b.sum_square, 4 * tolerance * a.sum_square);
  }
  static void ExpectSame(const AttentionState& a, const AttentionState& b,
                         double tolerance) {
    ExpectSame(a.partition(), b.partition(), tolerance);
    const auto a_pooled = a.PooledValue();
    const auto b_pooled = b.PooledValue();
    for (std::size_t d = 0; d < Rows::kValueDim; ++d) {
      // Values are below 6; one rounding to float on top of the sums' error.
      EXPECT_NEAR(a_pooled[d], b_pooled[d],
                  6 * (2 * tolerance + std::ldexp(1.0, -23)));
    }
    std::vector<RowIndex> a_rows, b_rows;
    for (const Candidate& c : a.top().Sorted()) a_rows.push_back(c.row);
    for (const Candidate& c : b.top().Sorted()) b_rows.push_back(c.row);
    EXPECT_THAT(a_rows, ElementsAreArray(b_rows));
  }

  const RowIds ids_;
};

TEST_F(StateTest, BlockedEqualsPlain) {
  const Rows rows(1000, 3, 1);
  const AttentionState plain = StateOf(rows, 0, 1000);
  for (const std::size_t block : {1, 7, 64, 999}) {
    AttentionState blocked = Empty();
    for (std::size_t begin = 0; begin < 1000; begin += block) {
      rows.AddTo(blocked, begin, std::min<std::size_t>(1000, begin + block));
    }
    ExpectSame(plain, blocked, ExpTolerance(24));
  }
}

TEST_F(StateTest, AgreesWithDoubles) {
  const Rows rows(500, 4, 2);
  // One key component, query 1: the logit is the key.
  ReferenceMatrix keys = {500, 1, {rows.logits.begin(), rows.logits.end()}};
  ReferenceMatrix values = {
      500, Rows::kValueDim, {rows.values.begin(), rows.values.end()}};
  const std::vector<double> one = {1};
  const ReferenceAnswer exact =
      AttendReference(one, keys, values, ScoreKind::kDot, 1);

  AttentionState state = Empty();
  for (std::size_t begin = 0; begin < 500; begin += 50) {
    rows.AddTo(state, begin, begin + 50);
  }
  const double tolerance = ExpTolerance(32);
  const SoftmaxPartition& partition = state.partition();
  EXPECT_NEAR(*partition.LogPartition(), exact.log_partition, tolerance);
  // d entropy = sum of dw x gap: at most twice the relative error x the mean
  // gap.
  EXPECT_NEAR(*partition.Entropy(), exact.entropy, 2 * 32 * tolerance);
  EXPECT_NEAR(partition.EffectiveCount(), exact.effective_count,
              4 * tolerance * exact.effective_count);
  for (std::size_t i = 0; i < 500; ++i) {
    EXPECT_NEAR(WeightOf(partition, rows.logits[i]), exact.weights[i],
                2 * tolerance * exact.weights[i]);
  }
  const std::vector<float> pooled = state.PooledValue();
  for (std::size_t d = 0; d < Rows::kValueDim; ++d) {
    EXPECT_NEAR(pooled[d], exact.pooled[d],
                6 * (2 * tolerance + std::ldexp(1.0, -23)));
  }
}

TEST_F(StateTest, MergeIsCommutative) {
  const Rows rows(300, 5, 3);
  const SoftmaxPartition a = StateOf(rows, 0, 100).partition();
  const SoftmaxPartition b = StateOf(rows, 100, 300).partition();
  SoftmaxPartition ab = a;
  ab.Merge(b);
  SoftmaxPartition ba = b;
  ba.Merge(a);
  // Both sum the same terms, so only doubles' rounding differs.
  ExpectSame(ab, ba, 1e-13);
}

TEST_F(StateTest, MergeIsAssociative) {
  const Rows rows(300, 5, 4);
  const SoftmaxPartition a = StateOf(rows, 0, 80).partition();
  const SoftmaxPartition b = StateOf(rows, 80, 150).partition();
  const SoftmaxPartition c = StateOf(rows, 150, 300).partition();
  SoftmaxPartition left = a;
  left.Merge(b);
  left.Merge(c);
  SoftmaxPartition right = b;
  right.Merge(c);
  SoftmaxPartition all = a;
  all.Merge(right);
  ExpectSame(left, all, 1e-13);
  ExpectSame(left, StateOf(rows, 0, 300).partition(), ExpTolerance(40));
}

TEST_F(StateTest, EmptyIsNeutralOnBothSides) {
  const Rows rows(40, 2, 5);
  const AttentionState state = StateOf(rows, 0, 40);
  SoftmaxPartition before;
  before.Merge(state.partition());
  ExpectSame(before, state.partition(), 0);
  AttentionState after = state;
  after.AddUnkept(SoftmaxPartition());
  ExpectSame(after, state, 0);
}

TEST_F(StateTest, EmptyHasNoPartitionAndAZeroValue) {
  const AttentionState empty = Empty();
  EXPECT_EQ(empty.partition().count, 0);
  EXPECT_EQ(empty.partition().LogPartition(), std::nullopt);
  EXPECT_EQ(empty.partition().Entropy(), std::nullopt);
  EXPECT_EQ(empty.partition().EffectiveCount(), 0);
  EXPECT_THAT(empty.PooledValue(), ElementsAre(0, 0, 0));
  EXPECT_TRUE(empty.top().Sorted().empty());
}

TEST_F(StateTest, AConstantOnAllLogitsChangesNoWeight) {
  Rows rows(200, 1, 6);
  // Multiples of 2^-10, so that the sums below are exact floats.
  for (float& logit : rows.logits) logit = std::round(logit * 1024) / 1024;
  const AttentionState state = StateOf(rows, 0, 200);
  Rows shifted = rows;
  for (float& logit : shifted.logits) logit += 512;
  const AttentionState moved = StateOf(shifted, 0, 200);
  EXPECT_NEAR(*moved.partition().LogPartition(),
              *state.partition().LogPartition() + 512, 1e-12);
  for (std::size_t i = 0; i < 200; ++i) {
    const double weight = WeightOf(state.partition(), rows.logits[i]);
    // Log partitions of at most 1024 are rounded to doubles.
    EXPECT_NEAR(WeightOf(moved.partition(), shifted.logits[i]), weight,
                4 * 1024 * std::ldexp(1.0, -53) * weight);
  }
  EXPECT_THAT(moved.PooledValue(), ElementsAreArray(state.PooledValue()));
}

TEST_F(StateTest, PermutingRowsPermutesWeights) {
  const Rows rows(257, 3, 7);
  Rows shuffled = rows;
  std::ranges::shuffle(shuffled.rows, std::mt19937(8));
  for (std::size_t i = 0; i < 257; ++i) {
    const auto from = static_cast<std::size_t>(shuffled.rows[i]);
    shuffled.logits[i] = rows.logits[from];
    std::copy_n(rows.values.begin() +
                    static_cast<std::ptrdiff_t>(from * Rows::kValueDim),
                Rows::kValueDim,
                shuffled.values.begin() +
                    static_cast<std::ptrdiff_t>(i * Rows::kValueDim));
  }
  // The same exps in another order: both sums have the kernels' few roundings.
  ExpectSame(StateOf(rows, 0, 257), StateOf(shuffled, 0, 257),
             2 * 9 * std::ldexp(1.0, -24));
}

TEST_F(StateTest, WeightsSumToOne) {
  const Rows rows(1000, 6, 9);
  const AttentionState state = StateOf(rows, 0, 1000);
  double sum = 0;
  for (const float logit : rows.logits)
    sum += WeightOf(state.partition(), logit);
  EXPECT_NEAR(sum, 1, ExpTolerance(48));
}

TEST_F(StateTest, PooledValueLiesWithinTheValues) {
  for (const float deviation : {0.0f, 1.0f, 30.0f}) {
    const Rows rows(100, deviation, 10);
    const auto pooled = StateOf(rows, 0, 100).PooledValue();
    for (std::size_t d = 0; d < Rows::kValueDim; ++d) {
      float least = rows.values[d], greatest = rows.values[d];
      for (std::size_t i = 0; i < 100; ++i) {
        least = std::min(least, rows.values[i * Rows::kValueDim + d]);
        greatest = std::max(greatest, rows.values[i * Rows::kValueDim + d]);
      }
      EXPECT_GE(pooled[d], least);
      EXPECT_LE(pooled[d], greatest);
    }
  }
}

TEST_F(StateTest, PoolingOneValueGivesIt) {
  Rows rows(50, 3, 11);
  for (std::size_t i = 0; i < 50; ++i) {
    rows.values[3 * i] = 0.1f;
    rows.values[3 * i + 1] = -7;
    rows.values[3 * i + 2] = 1e20f;
  }
  EXPECT_THAT(StateOf(rows, 0, 50).PooledValue(), ElementsAre(0.1f, -7, 1e20f));
}

// The weights of logits {1, 2, 3} / temperature, added one row per block.
std::vector<double> WeightsAt(double temperature) {
  SoftmaxPartition partition;
  std::vector<float> logits;
  for (const double similarity : {1, 2, 3}) {
    logits.push_back(static_cast<float>(
        similarity * LogitFactor(ScoreKind::kDot, 1, temperature)));
    partition.Add(&logits.back(), 1, nullptr);
  }
  std::vector<double> weights;
  for (const float logit : logits)
    weights.push_back(WeightOf(partition, logit));
  return weights;
}

TEST_F(StateTest, TemperatureNearZeroPicksTheTop) {
  EXPECT_THAT(WeightsAt(1e-4), ElementsAre(0, 0, 1));
}

TEST_F(StateTest, LargeTemperatureGivesUniform) {
  EXPECT_THAT(WeightsAt(1e9), Each(::testing::DoubleNear(1.0 / 3, 1e-8)));
}

TEST_F(StateTest, TwoTemperaturesGiveTwoAnswers) {
  EXPECT_NEAR(WeightsAt(1)[2], 1 / (1 + std::exp(-1.0) + std::exp(-2.0)),
              ExpTolerance(2));
  EXPECT_NEAR(WeightsAt(2)[2], 1 / (1 + std::exp(-0.5) + std::exp(-1.0)),
              ExpTolerance(1));
}

TEST_F(StateTest, ALaterGreaterMaxRescalesTheSums) {
  SoftmaxPartition partition;
  for (const float logit : {1.0f, 3.0f, 2.0f}) {
    partition.Add(&logit, 1, nullptr);
  }
  EXPECT_EQ(partition.count, 3);
  EXPECT_EQ(partition.max, 3);
  const double e2 = std::exp(-2.0), e1 = std::exp(-1.0);
  const double tolerance = ExpTolerance(2);
  EXPECT_NEAR(partition.sum, e2 + 1 + e1, tolerance);
  EXPECT_NEAR(partition.sum_gap, -2 * e2 - e1, tolerance);
  EXPECT_NEAR(partition.sum_square, e2 * e2 + 1 + e1 * e1, tolerance);
}

TEST_F(StateTest, HugeLogitsStayFinite) {
  for (const bool greatest_first : {true, false}) {
    SoftmaxPartition partition;
    std::vector<float> logits = {1e4f, -1e4f, 1e4f, 9999};
    if (!greatest_first) std::ranges::reverse(logits);
    for (const float logit : logits) partition.Add(&logit, 1, nullptr);
    SoftmaxPartition lowest;
    const float low = -3e38f;
    lowest.Add(&low, 1, nullptr);
    partition.Merge(lowest);
    EXPECT_EQ(partition.count, 5);
    const double e = std::exp(-1.0);
    EXPECT_NEAR(*partition.LogPartition(), 1e4 + std::log(2 + e),
                ExpTolerance(1));
    EXPECT_NEAR(*partition.Entropy(), std::log(2 + e) + e / (2 + e),
                2 * ExpTolerance(1));
    EXPECT_NEAR(partition.EffectiveCount(), (2 + e) * (2 + e) / (2 + e * e),
                4 * ExpTolerance(1));
  }
}

TEST_F(StateTest, EqualLogitsAreUniform) {
  const std::vector<float> logits(1000, -17.25f);
  SoftmaxPartition partition;
  partition.Add(logits.data(), 1000, nullptr);
  EXPECT_DOUBLE_EQ(*partition.LogPartition(), -17.25 + std::log(1000.0));
  EXPECT_DOUBLE_EQ(*partition.Entropy(), std::log(1000.0));
  EXPECT_DOUBLE_EQ(partition.EffectiveCount(), 1000);
}

TEST_F(StateTest, OneRowIsCertain) {
  SoftmaxPartition partition;
  const float logit = 3;
  partition.Add(&logit, 1, nullptr);
  EXPECT_EQ(WeightOf(partition, 3), 1);
  EXPECT_EQ(*partition.Entropy(), 0);
  EXPECT_EQ(partition.EffectiveCount(), 1);
  EXPECT_EQ(*partition.LogPartition(), 3);
}

TEST_F(StateTest, TopKIsThatOfAllRowsWhateverTheBlocks) {
  const Rows rows(3000, 1, 12);
  std::vector<RowIndex> expected = rows.rows;
  std::ranges::sort(expected, [&](RowIndex a, RowIndex b) {
    return rows.logits[a] > rows.logits[b];
  });
  expected.resize(200);
  AttentionState state = Empty(200);
  for (std::size_t begin = 0; begin < 3000; begin += 500) {
    rows.AddTo(state, begin, begin + 500);
  }
  std::vector<RowIndex> found;
  for (const Candidate& c : state.top().Sorted()) {
    found.push_back(c.row);
    EXPECT_EQ(c.logit, rows.logits[c.row]);
  }
  EXPECT_THAT(found, ElementsAreArray(expected));
}

TEST_F(StateTest, ZeroKeepsThePartitionOnly) {
  const Rows rows(100, 1, 13);
  const AttentionState state = StateOf(rows, 0, 100, 0);
  EXPECT_TRUE(state.top().Sorted().empty());
  EXPECT_EQ(state.partition().count, 100);
}

TEST_F(StateTest, WithoutPoolingThereIsNoValue) {
  const Rows rows(10, 1, 14);
  AttentionState state(3, &ids_);
  state.Add(0, rows.rows, rows.logits, rows.logits);
  EXPECT_EQ(state.value_dim(), 0);
  EXPECT_TRUE(state.PooledValue().empty());
}

TEST_F(StateTest, WhatIsNotKeptMayBeAllAndFarBelowZero) {
  SoftmaxPartition rows;
  const float logits[] = {-800, -801};
  rows.Add(logits, 2, nullptr);
  AttentionState state(0, nullptr, 2);
  const double sum[] = {1, 2};
  state.AddUnkept(rows, sum);
  EXPECT_NEAR(state.PooledValue()[0], 1 / rows.sum, 1e-6);
  EXPECT_NEAR(state.PooledValue()[1], 2 / rows.sum, 1e-6);
}

}  // namespace
}  // namespace attendant
