// Values pooled from codes over all rows of an index, compared with doubles.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "core/attention/softmax/log_add.h"
#include "core/attention/softmax/score.h"
#include "core/base/bitmap.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/ivf/list_index.h"
#include "core/shortlist/kinds/pq_index.h"
#include "core/shortlist/lists/list_values.h"
#include "core/shortlist/passes/code_pass.h"
#include "core/shortlist/passes/code_scan.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

// Enough rows that codes are read instead of all floats.
constexpr std::int64_t kRows = 11000;
constexpr std::int64_t kDim = 24;
constexpr std::int64_t kShortlist = 20;
constexpr double kTemperatures[] = {0.2, 0.1, 0.05, 0.02};

// Values for some of the rows.
class TableValues : public ValueSource {
 public:
  explicit TableValues(std::int64_t dim) : dim_(dim) {}

  std::int64_t dim() const { return dim_; }
  void Add(std::vector<float> value) { values_.push_back(std::move(value)); }
  const float* ValueOf(RowIndex row) const override {
    const std::vector<float>& value = values_[row];
    return value.empty() ? nullptr : value.data();
  }

 private:
  std::int64_t dim_;
  std::vector<std::vector<float>> values_;
};

// Returns keys of norm 1, or of norms up to norm_spread.
KeyTable TestKeys(float norm_spread = 1) {
  KeyTable table = ClusteredKeys(kRows, kDim, 60, 5, norm_spread);
  for (std::size_t r = 0; norm_spread == 1 && r < kRows; ++r) {
    const auto factor = static_cast<float>(1 / Norm(table.keys[r]));
    for (std::size_t d = 0; d < kDim; ++d) table.floats[r * kDim + d] *= factor;
  }
  return table;
}

// Returns a vector of norm 1 near a key.
std::vector<float> NearAKey(const KeyTable& keys, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  const std::span<const float> key = keys.keys[random() % kRows];
  const auto noise =
      static_cast<float>(Norm(key) / std::sqrt(static_cast<double>(kDim)));
  std::vector<float> query;
  for (const float component : key) {
    query.push_back(component + noise * normal(random));
  }
  const auto factor = static_cast<float>(1 / Norm(query));
  for (float& component : query) component *= factor;
  return query;
}

std::unique_ptr<IvfIndex> IndexOf(const KeyTable& keys,
                                  ScoreKind kind = ScoreKind::kDot,
                                  const TableValues* values = nullptr,
                                  std::uint64_t seed = 1) {
  IvfOptions options;
  options.list_count = 60;
  options.seed = seed;
  options.values = values;
  options.value_dim = values == nullptr ? 0 : values->dim();
  return IvfIndex::Build(keys.keys, kDim, kind, options).value();
}

struct Pooled {
  std::vector<float> value;
  ScanStats stats;
  double deviation = 0;  // that is stated
};

// Repeats what core/catalog/query/pooled_deviation.h computes for one segment.
double StatedDeviation(const ScanStats& stats, const AttentionState& state,
                       const std::vector<float>& value) {
  const PooledError& error = *stats.pooled_error;
  const double log_square = 2 * *state.partition().LogPartition();
  double spread = error.mean_square;
  double distance = 0;
  for (std::size_t d = 0; d < value.size(); ++d) {
    spread += value[d] * (value[d] - 2 * error.mean[d]);
    distance += (value[d] - error.mean[d]) * (value[d] - error.mean[d]);
  }
  return std::sqrt(
      std::exp(error.log_weight_variance - log_square) *
          std::max(spread, distance) +
      std::exp(error.log_rounding_variance - log_square) +
      std::exp(LogAdd(stats.log_variance, stats.log_drawn_variance) -
               log_square) *
          distance);
}

Pooled Pool(const KeyIndex& index, const ScanQuery& query, std::int64_t dim) {
  AttentionState state(kShortlist, &kNoIds, dim);
  auto stats = index.Scan(query, state);
  EXPECT_OK(stats);
  Pooled pooled = {state.PooledValue(), *std::move(stats)};
  if (pooled.stats.pooled_error && !pooled.stats.pooled_error->mean.empty()) {
    pooled.deviation = StatedDeviation(pooled.stats, state, pooled.value);
  }
  return pooled;
}

// Pools with options for so many keys that only the necessary codes are read.
Pooled PoolByFourBits(const KeyIndex& index, const ScanQuery& query) {
  const InvertedLists& lists = static_cast<const ListIndex&>(index).lists();
  const ListValues values = ListValues::OfKeys(lists, false);
  CodePass pass;
  if (!pass.Start(query, lists, kShortlist, true,
                  {.bits = CodeBits::k4,
                   .rescore_count = 1000,
                   .precision = query.goals.mass_precision,
                   .values = &values})) {
    ADD_FAILURE() << "4 bits say too little";
    return {std::vector<float>(kDim), {}};
  }
  ListVisit visit;
  visit.pass = &pass;
  ListVisit* const visits[] = {&visit};
  TakeOtherLists(lists, visits);
  AttentionState state(kShortlist, &kNoIds, kDim);
  Pooled pooled;
  EXPECT_OK(pass.Finish(true, state, pooled.stats));
  pooled.value = state.PooledValue();
  pooled.deviation = StatedDeviation(pooled.stats, state, pooled.value);
  return pooled;
}

// The plain twin, from the keys' similarities with a query.
std::vector<double> ExactValue(const KeyTable& keys,
                               const std::vector<double>& similarities,
                               double temperature, const ValueSource* values,
                               std::int64_t dim, const Bitmap* allowed) {
  std::vector<double> logits(similarities.size(),
                             -std::numeric_limits<double>::infinity());
  double max = logits[0];
  for (std::size_t r = 0; r < logits.size(); ++r) {
    if (allowed != nullptr && !allowed->Test(static_cast<RowIndex>(r))) {
      continue;
    }
    logits[r] = similarities[r] / temperature;
    max = std::max(max, logits[r]);
  }
  double sum = 0;
  std::vector<double> mean(static_cast<std::size_t>(dim));
  for (std::size_t r = 0; r < logits.size(); ++r) {
    const double e = std::exp(logits[r] - max);
    sum += e;
    const float* value =
        values == nullptr ? nullptr : values->ValueOf(static_cast<RowIndex>(r));
    if (value == nullptr) value = keys.keys[r].data();
    for (std::size_t d = 0; d < mean.size(); ++d) mean[d] += e * value[d];
  }
  for (double& component : mean) component /= sum;
  return mean;
}

std::vector<double> Similarities(const KeyTable& keys, ScoreKind kind,
                                 const std::vector<float>& query) {
  std::vector<double> similarities;
  for (const std::span<const float> key : keys.keys) {
    double dot = 0;
    for (std::size_t d = 0; d < kDim; ++d) dot += double{query[d]} * key[d];
    similarities.push_back(kind == ScoreKind::kCosine ? dot / Norm(key) : dot);
  }
  return similarities;
}

struct Case {
  const KeyTable* keys = nullptr;
  const KeyIndex* index = nullptr;
  ScoreKind kind = ScoreKind::kDot;
  const TableValues* values = nullptr;
  const Bitmap* allowed = nullptr;
  ScanGoals goals = {.mass_precision = 0.02};
  bool by_four_bits = false;

  std::int64_t dim() const { return values == nullptr ? kDim : values->dim(); }
  ScanQuery QueryOf(const std::vector<float>& query, double temperature) const {
    ScanQuery scan = QueryFor(query, kRows);
    scan.score_kind = kind;
    scan.logit_factor = 1 / temperature;
    scan.allowed = allowed;
    scan.values = values;
    scan.goals = goals;
    return scan;
  }
};

struct Error {
  double relative = 0;
  double along = 0;  // in the direction of the exact value
  bool held = false;
};

Error ErrorOf(const Case& asked, const std::vector<float>& query,
              const std::vector<double>& similarities, double temperature) {
  const ScanQuery scan = asked.QueryOf(query, temperature);
  const Pooled pooled = asked.by_four_bits
                            ? PoolByFourBits(*asked.index, scan)
                            : Pool(*asked.index, scan, asked.dim());
  EXPECT_TRUE(pooled.stats.complete);
  EXPECT_TRUE(pooled.stats.pooled_error);
  const std::vector<double> exact =
      ExactValue(*asked.keys, similarities, temperature, asked.values,
                 asked.dim(), asked.allowed);
  double square = 0;
  double norm_square = 0;
  double along = 0;
  for (std::size_t d = 0; d < exact.size(); ++d) {
    const double error = pooled.value[d] - exact[d];
    square += error * error;
    norm_square += exact[d] * exact[d];
    along += error * exact[d];
  }
  // Error of the floats: a logit errs by 30 roundings over the temperature.
  const double rounding = 30 * 0x1p-24 / temperature * std::sqrt(norm_square);
  return {std::sqrt(square / norm_square), along / norm_square,
          std::sqrt(square) <= 2.25 * pooled.deviation + rounding};
}

// Expects errors over many queries to be small, and within what is stated.
void ExpectHonest(const Case& asked, double most_median,
                  std::span<const double> temperatures = kTemperatures) {
  constexpr int kQueries = 60;
  std::vector<std::vector<double>> errors(temperatures.size());
  std::vector<int> held(temperatures.size());
  for (std::uint64_t q = 0; q < kQueries; ++q) {
    const std::vector<float> query = NearAKey(*asked.keys, 100 + q);
    const std::vector<double> similarities =
        Similarities(*asked.keys, asked.kind, query);
    for (std::size_t t = 0; t < temperatures.size(); ++t) {
      const Error error = ErrorOf(asked, query, similarities, temperatures[t]);
      errors[t].push_back(error.relative);
      if (error.held) ++held[t];
    }
  }
  for (std::size_t t = 0; t < temperatures.size(); ++t) {
    SCOPED_TRACE(temperatures[t]);
    std::nth_element(errors[t].begin(), errors[t].begin() + kQueries / 2,
                     errors[t].end());
    EXPECT_LE(errors[t][kQueries / 2], most_median);
    EXPECT_GE(held[t], 0.93 * kQueries);
  }
}

TEST(PooledValuesTest, KeysArePooledFromTheirCodes) {
  const KeyTable keys = TestKeys();
  const auto index = IndexOf(keys);
  ExpectHonest({.keys = &keys, .index = index.get()}, 0.02);
  // Sharper queries read 8 bits.
  constexpr double kFlat[] = {0.4, 0.2};
  ExpectHonest({.keys = &keys, .index = index.get(), .by_four_bits = true},
               0.02, kFlat);
}

// Averages over many roundings of the same keys: a code's error moves both its
// key's weight and its value, which must not bias the mean.
TEST(PooledValuesTest, ErrorsHaveNoDirection) {
  const KeyTable keys = TestKeys();
  const std::vector<float> query = NearAKey(keys, 3);
  const std::vector<double> similarities =
      Similarities(keys, ScoreKind::kDot, query);
  constexpr int kSeeds = 16;
  for (const bool by_four_bits : {false, true}) {
    SCOPED_TRACE(by_four_bits);
    double sum = 0;
    double square_sum = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const auto index = IndexOf(keys, ScoreKind::kDot, nullptr, 50 + seed);
      const Error error = ErrorOf(
          {.keys = &keys, .index = index.get(), .by_four_bits = by_four_bits},
          query, similarities, by_four_bits ? 0.2 : 0.1);
      sum += error.along;
      square_sum += error.along * error.along;
    }
    const double mean = sum / kSeeds;
    const double variance = square_sum / kSeeds - mean * mean;
    EXPECT_LE(std::abs(mean), 3 * std::sqrt(variance / kSeeds)) << mean;
  }
}

TEST(PooledValuesTest, KeysOfAnyNormArePooledWhereCodesAreOfDirections) {
  const KeyTable keys = TestKeys(6);
  const auto index = IndexOf(keys, ScoreKind::kCosine);
  ExpectHonest(
      {.keys = &keys, .index = index.get(), .kind = ScoreKind::kCosine}, 0.02);
}

// Values with another dimension than the keys, and partly unlike them.
TableValues ValuesLike(const KeyTable& keys, std::int64_t dim) {
  TableValues values(dim);
  std::mt19937_64 random(9);
  std::normal_distribution<float> normal;
  for (const std::span<const float> key : keys.keys) {
    std::vector<float> value;
    for (std::int64_t d = 0; d < dim; ++d) {
      value.push_back(3 * key[d % kDim] + 0.5F + 0.2F * normal(random));
    }
    values.Add(std::move(value));
  }
  return values;
}

TEST(PooledValuesTest, ValuesHaveCodesOfTheirOwn) {
  const KeyTable keys = TestKeys();
  for (const std::int64_t dim : {7, 40}) {
    const TableValues values = ValuesLike(keys, dim);
    const auto index = IndexOf(keys, ScoreKind::kDot, &values);
    ExpectHonest({.keys = &keys, .index = index.get(), .values = &values},
                 0.02);
  }
}

TEST(PooledValuesTest, RowsWithoutAValuePoolTheirKeys) {
  const KeyTable keys = TestKeys();
  TableValues values(kDim);
  for (std::size_t r = 0; r < kRows; ++r) {
    std::vector<float> value;
    if (r % 3 == 0)
      value.assign(keys.keys[kRows - 1 - r].begin(),
                   keys.keys[kRows - 1 - r].end());
    values.Add(std::move(value));
  }
  const auto index = IndexOf(keys, ScoreKind::kDot, &values);
  // A row with a value has that of an unlike row, so little of the values
  // remains.
  ExpectHonest({.keys = &keys, .index = index.get(), .values = &values}, 0.04);
}

TEST(PooledValuesTest, MaskedRowsArePooledNowhere) {
  const KeyTable keys = TestKeys();
  const auto index = IndexOf(keys);
  Bitmap most(kRows);
  Bitmap few(kRows);
  std::mt19937_64 random(4);
  for (RowIndex r = 0; r < kRows; ++r) {
    if (random() % 5 != 0) most.Set(r);
    if (random() % 10 == 0) few.Set(r);
  }
  Case asked = {.keys = &keys, .index = index.get(), .allowed = &most};
  ExpectHonest(asked, 0.02);
  // This few rows are pooled from their floats.
  asked.allowed = &few;
  const std::vector<float> query = NearAKey(keys, 1);
  const Pooled pooled = Pool(*index, asked.QueryOf(query, 0.1), kDim);
  EXPECT_FALSE(pooled.stats.pooled_error);
  const std::vector<double> exact =
      ExactValue(keys, Similarities(keys, ScoreKind::kDot, query), 0.1, nullptr,
                 kDim, &few);
  for (std::size_t d = 0; d < kDim; ++d) {
    EXPECT_NEAR(pooled.value[d], exact[d], 1e-5);
  }
}

TEST(PooledValuesTest, BoundsAndProofsComeWithAValueToo) {
  const KeyTable keys = TestKeys();
  const auto index = IndexOf(keys);
  ExpectHonest(
      {.keys = &keys, .index = index.get(), .goals = {.certified = true}},
      0.02);
}

TEST(PooledValuesTest, WhatHasNoCodesIsPooledFromFloats) {
  const KeyTable keys = TestKeys();
  const TableValues values = ValuesLike(keys, 7);
  const auto index = IndexOf(keys);
  const Case asked = {.keys = &keys, .index = index.get(), .values = &values};
  const std::vector<float> query = NearAKey(keys, 2);
  const Pooled pooled = Pool(*index, asked.QueryOf(query, 0.1), 7);
  EXPECT_TRUE(pooled.stats.exact);
  EXPECT_FALSE(pooled.stats.pooled_error);
  const std::vector<double> exact =
      ExactValue(keys, Similarities(keys, ScoreKind::kDot, query), 0.1, &values,
                 7, nullptr);
  for (std::size_t d = 0; d < 7; ++d) {
    EXPECT_NEAR(pooled.value[d], exact[d], 1e-5);
  }
}

// Without lists, a third of the keys would err in the same way.
TEST(PooledValuesTest, EqualKeysArePooledRightByIndexesWithoutLists) {
  KeyTable keys = TestKeys();
  for (std::int64_t r = 0; r < kRows; r += 3) {
    std::copy_n(keys.keys[0].data(), kDim, keys.floats.data() + r * kDim);
  }
  ASSERT_OK_AND_ASSIGN(const auto index,
                       PqIndex::Build(keys.keys, kDim, ScoreKind::kDot, {}));
  const Case asked = {.keys = &keys, .index = index.get()};
  for (std::uint64_t q = 0; q < 10; ++q) {
    const std::vector<float> query = NearAKey(keys, q);
    const Pooled pooled = Pool(*index, asked.QueryOf(query, 0.3), kDim);
    const std::vector<double> exact =
        ExactValue(keys, Similarities(keys, ScoreKind::kDot, query), 0.3,
                   nullptr, kDim, nullptr);
    for (std::size_t d = 0; d < kDim; ++d) {
      EXPECT_NEAR(pooled.value[d], exact[d], 1e-5);
    }
  }
}

TEST(PooledValuesTest, ValuesAreTheSameInAnyCompany) {
  const KeyTable keys = TestKeys();
  const auto index = IndexOf(keys);
  const Case asked = {.keys = &keys, .index = index.get()};
  std::vector<std::vector<float>> vectors;
  for (std::uint64_t q = 0; q < 5; ++q) vectors.push_back(NearAKey(keys, q));
  std::vector<ScanQuery> queries;
  std::vector<std::unique_ptr<AttentionState>> states;
  for (const std::vector<float>& vector : vectors) {
    queries.push_back(asked.QueryOf(vector, 0.1));
    // Every second query pools.
    states.push_back(std::make_unique<AttentionState>(
        kShortlist, &kNoIds, states.size() % 2 == 0 ? kDim : 0));
  }
  std::vector<ScanTask> tasks;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    tasks.push_back({&queries[q], states[q].get()});
  }
  index->ScanTogether(tasks);
  for (std::size_t q = 0; q < queries.size(); ++q) {
    ASSERT_OK(tasks[q].stats);
    AttentionState alone(kShortlist, &kNoIds, states[q]->value_dim());
    ASSERT_OK(index->Scan(queries[q], alone));
    EXPECT_EQ(alone.PooledValue(), states[q]->PooledValue());
    EXPECT_EQ(alone.partition().sum, states[q]->partition().sum);
  }
}

}  // namespace
}  // namespace attendant
