// Values pooled over the whole catalog, from an index and from floats.
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "core/catalog/query/pooled_deviation.h"
#include "tests/core/catalog/catalog_fixture.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// One component, so that all can be checked by eye: V is 2, and half of Z = 4
// is in rows of mean 3 and mean square 10.
PooledPart ThePart() {
  PooledPart part;
  part.error.mean = {3};
  part.error.mean_square = 10;
  part.log_sum_variance = -std::numeric_limits<double>::infinity();
  return part;
}

double DeviationOf(const PooledPart& part) {
  const SoftmaxPartition partition = {.count = 4, .max = 0, .sum = 4};
  const float value = 2;
  return PooledDeviation({&part, 1}, partition, {&value, 1});
}

TEST(PooledDeviationTest, AddsUpItsThreeParts) {
  EXPECT_EQ(DeviationOf(ThePart()), 0);
  PooledPart part = ThePart();
  // 0.16 x E(value - 2)^2 = 0.16 x (10 - 4 x 3 + 4), over 4^2.
  part.error.log_weight_variance = std::log(0.16);
  EXPECT_NEAR(DeviationOf(part), std::sqrt(0.16 * 2) / 4, 1e-12);
  part = ThePart();
  part.error.log_rounding_variance = std::log(0.36);
  EXPECT_NEAR(DeviationOf(part), 0.6 / 4, 1e-12);
  // A relative error of the whole sum moves V by that share of 3 - 2.
  part = ThePart();
  part.log_sum_variance = std::log(0.25);
  EXPECT_NEAR(DeviationOf(part), 0.5 / 4, 1e-12);
}

TEST(PooledDeviationTest, NothingPooledFromCodesIsNotOff) {
  PooledPart part = ThePart();
  part.error = PooledError();
  part.log_sum_variance = 0;
  EXPECT_EQ(DeviationOf(part), 0);
  const std::vector<float> zero = {0, 0};
  EXPECT_EQ(RelativeError(0, zero), kMinRelativeError);
  EXPECT_EQ(RelativeError(0.1, zero), std::numeric_limits<double>::infinity());
  const std::vector<float> value = {3, 4};
  EXPECT_NEAR(RelativeError(0.1, value), 2.25 * 0.1 / 5, 1e-12);
  EXPECT_EQ(RelativeError(1e-6, value), kMinRelativeError);
}

// NaN or infinity, as from a sum that overflowed, must not pass for the most
// certain value.
TEST(PooledDeviationTest, WhatIsNoNumberIsNotKnown) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<float> value = {3, 4};
  EXPECT_EQ(RelativeError(kNone, value), kInfinity);
  EXPECT_EQ(RelativeError(kInfinity, value), kInfinity);
  PooledPart part = ThePart();
  part.error.log_weight_variance = 0;
  part.error.mean_square = kNone;
  EXPECT_TRUE(std::isnan(DeviationOf(part)));
  part.error.mean_square = 10;
  part.error.mean = {kNone};
  EXPECT_TRUE(std::isnan(DeviationOf(part)));
}

class PooledValueTest : public CatalogFixture {
 protected:
  // Enough items that codes are read instead of all floats.
  static constexpr int kCount = 11000;
  static constexpr int kDim = 24;

  // Returns items with keys of norm 1 around 40 centres.
  std::vector<Item> Items(int count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    std::mt19937_64 of_centres(77);
    std::vector<std::vector<float>> centres(40, std::vector<float>(kDim));
    for (std::vector<float>& centre : centres) {
      for (float& component : centre) component = normal(of_centres);
    }
    std::vector<Item> items;
    for (int i = 0; i < count; ++i) {
      std::vector<float> key = centres[random() % centres.size()];
      double square = 0;
      for (float& component : key) {
        component += normal(random);
        square += double{component} * component;
      }
      for (float& component : key) {
        component /= static_cast<float>(std::sqrt(square));
      }
      items.push_back(MakeItem(
          "item" + std::to_string(seed) + "-" + std::to_string(i), key));
    }
    return items;
  }

  void OpenIvf(std::int64_t value_dim, const std::vector<Item>& items,
               LiveCatalogOptions options = {}) {
    CatalogSchema schema = OneFieldSchema(kDim);
    schema.value_dim = value_dim;
    schema.key_fields[0].index_kind = IndexKind::kIvf;
    OpenCatalog(schema, options);
    Upsert(items);
    catalog_->AwaitIndexes();
    ASSERT_OK(catalog_->merge_status());
    ASSERT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
  }

  AttendQuery PoolQuery(std::uint64_t seed) {
    AttendQuery query = VectorQuery(Items(1, 1000 + seed)[0].keys[0]);
    query.temperature = 0.1;
    query.pool_scope = WeightScope::kCatalog;
    return query;
  }

  // Expects most of 40 estimates from the index to be within their stated
  // errors.
  void ExpectEstimates(double most_stated) {
    constexpr int kQueries = 40;
    int held = 0;
    for (std::uint64_t q = 0; q < kQueries; ++q) {
      AttendQuery query = PoolQuery(q);
      if (q % 2 == 0) query.scan_mode = ScanMode::kIndex;
      ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
      const PooledValue& value = *answer.pooled_value;
      ASSERT_EQ(value.method, MassMethod::kEstimate);
      ASSERT_GT(value.relative_error, 0);
      ASSERT_LE(value.relative_error, most_stated);
      query.scan_mode = ScanMode::kExact;
      ASSERT_OK_AND_ASSIGN(const AttendAnswer exact, Ask(query));
      const PooledValue& truth = *exact.pooled_value;
      ASSERT_EQ(truth.method, MassMethod::kExact);
      ASSERT_EQ(truth.relative_error, 0);
      EXPECT_EQ(value.key_as_value_count, truth.key_as_value_count);
      double square = 0;
      double square_norm = 0;
      for (std::size_t d = 0; d < truth.values.size(); ++d) {
        const double error = double{value.values[d]} - truth.values[d];
        square += error * error;
        square_norm += double{value.values[d]} * value.values[d];
      }
      EXPECT_GT(square, 0);
      if (std::sqrt(square / square_norm) <= value.relative_error) ++held;
    }
    EXPECT_GE(held, 37);
  }
};

TEST_F(PooledValueTest, KeysWithoutValuesAreEstimated) {
  OpenIvf(0, Items(kCount, 1));
  ExpectEstimates(0.05);
  AttendQuery query = PoolQuery(1);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_EQ(answer.pooled_value->key_as_value_count, kCount);
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(answer.returned_mass.method, MassMethod::kEstimate);
}

TEST_F(PooledValueTest, ExactIsWhatIsAskedForAsExact) {
  OpenIvf(0, Items(kCount, 1));
  AttendQuery query = PoolQuery(1);
  query.mass_method = MassMethod::kExact;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer exact, Ask(query));
  EXPECT_EQ(exact.pooled_value->method, MassMethod::kExact);
  EXPECT_EQ(exact.pooled_value->relative_error, 0);
  // Proven results or bounds of the mass say nothing about the pooled value.
  query = PoolQuery(1);
  query.recall = 1;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer proven, Ask(query));
  EXPECT_TRUE(proven.results_exact);
  EXPECT_NE(proven.pooled_value->method, MassMethod::kBound);
  query = PoolQuery(1);
  query.mass_method = MassMethod::kBound;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer bounded, Ask(query));
  EXPECT_EQ(bounded.returned_mass.method, MassMethod::kBound);
  EXPECT_EQ(bounded.pooled_value->method, MassMethod::kEstimate);
}

TEST_F(PooledValueTest, ValuesOfAnotherDimensionAreEstimated) {
  std::vector<Item> items = Items(kCount, 2);
  for (Item& item : items) {
    for (int d = 0; d < 5; ++d) {
      item.value.push_back(1 + 2 * item.keys[0][d]);
    }
  }
  OpenIvf(5, items);
  ExpectEstimates(0.05);
}

TEST_F(PooledValueTest, SomeValuesAndWritesAfterTheIndexAreEstimated) {
  std::vector<Item> items = Items(kCount, 3);
  for (std::size_t i = 0; i < items.size(); i += 3) {
    for (const float component : items[i].keys[0]) {
      items[i].value.push_back(2 * component);
    }
  }
  LiveCatalogOptions options;
  // Nothing is merged again.
  options.settle_time = absl::Hours(1);
  OpenIvf(kDim, items, options);
  ExpectEstimates(0.05);
  // Adds a growing segment, updates and deletes.
  std::vector<Item> more = Items(300, 4);
  for (std::size_t i = 0; i < 100; ++i) more[i].id = items[7 * i].id;
  Upsert(more);
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < 600; ++i) ids.push_back(items[7 * i + 5].id);
  Delete(ids);
  ASSERT_GT(catalog_->snapshot()->segments.size(), 1U);
  ExpectEstimates(0.05);
}

TEST_F(PooledValueTest, ValuesThatCodesKnowTooLittleOfAreScored) {
  // Each item's value is independent of its key, and the mean is close to 0.
  std::mt19937_64 random(8);
  std::normal_distribution<float> normal;
  std::vector<Item> items = Items(kCount, 5);
  for (Item& item : items) item.value = {normal(random), normal(random)};
  OpenIvf(2, items);
  constexpr int kQueries = 100;
  int held_count = 0;
  int too_little_count = 0;
  for (int seed = 0; seed < kQueries; ++seed) {
    AttendQuery query = PoolQuery(seed);
    query.temperature = 0.2;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
    query.scan_mode = ScanMode::kExact;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer exact, Ask(query));
    // Only the index may answer: its stated error is large, and covers the
    // truth.
    query.scan_mode = ScanMode::kIndex;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer guess, Ask(query));
    ASSERT_EQ(guess.pooled_value->method, MassMethod::kEstimate);
    const bool knows_too_little = guess.pooled_value->relative_error > 0.05;
    too_little_count += knows_too_little ? 1 : 0;
    EXPECT_EQ(answer.pooled_value->method == MassMethod::kExact,
              knows_too_little);
    const std::vector<float>& values = guess.pooled_value->values;
    const std::vector<float>& truth = exact.pooled_value->values;
    held_count += std::hypot(values[0] - truth[0], values[1] - truth[1]) <=
                          guess.pooled_value->relative_error *
                              std::hypot(values[0], values[1])
                      ? 1
                      : 0;
  }
  // 95 %, less three standard deviations of this many queries.
  EXPECT_GE(held_count, 88);
  EXPECT_GT(too_little_count, kQueries / 2);
}

TEST_F(PooledValueTest, MoreIsScoredWhereMoreIsAskedFor) {
  OpenIvf(0, Items(kCount, 6));
  AttendQuery query = PoolQuery(1);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer usual, Ask(query));
  EXPECT_EQ(usual.pooled_value->method, MassMethod::kEstimate);
  query.mass_precision = 1e-5;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer precise, Ask(query));
  EXPECT_EQ(precise.pooled_value->method, MassMethod::kExact);
}

}  // namespace
}  // namespace attendant
