// Attention by the heads of a catalog's model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "tests/core/catalog/model_twin.h"
#include "tests/core/catalog/query/heads_fixture.h"
#include "tests/support/random_model.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Numbers of the random models and items are below 1 in size. A projected
// component sums 6 products and a logit 3 of these: below 150 roundings of
// numbers below 60, so 60 x 150 x 2^-24 < 6e-4 at worst and far less in
// practice. Weights have the same relative error.
constexpr double kHeadTolerance = 6e-4;

TEST_F(ModelHeadsTest, EachHeadNormalisesAndAnItemWeighsTheMean) {
  for (const ScoreKind kind :
       {ScoreKind::kDot, ScoreKind::kScaledDot, ScoreKind::kCosine}) {
    SCOPED_TRACE(Name(kind));
    disk_ = std::make_shared<FakeDisk>();
    Open(kind);
    AttendQuery query = Query();
    query.weight_scope = WeightScope::kCatalog;
    query.result_count = 40;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
    const std::vector<Doubles> expected = TwinWeights(kind, items_);
    const std::vector<std::string> ids = IdsOf(answer);
    ASSERT_THAT(ids, SizeIs(40));
    double sum = 0;
    double last = 2;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto row = static_cast<std::size_t>(IndexOf(ids[i]));
      const AttendedItem& item = answer.items[i];
      ASSERT_THAT(item.head_weights, SizeIs(2));
      EXPECT_NEAR(item.head_weights[0], expected[0][row], kHeadTolerance);
      EXPECT_NEAR(item.head_weights[1], expected[1][row], kHeadTolerance);
      EXPECT_NEAR(item.weight, (expected[0][row] + expected[1][row]) / 2,
                  kHeadTolerance);
      EXPECT_EQ(item.head, item.head_weights[1] > item.head_weights[0] ? 1 : 0);
      EXPECT_LE(item.weight, last);
      last = item.weight;
      sum += item.weight;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_NEAR(answer.returned_mass.value, 1, 1e-6);
    EXPECT_EQ(answer.returned_mass.method, MassMethod::kExact);
    EXPECT_FALSE(answer.log_partition.has_value());
    ASSERT_THAT(answer.heads, SizeIs(2));
    EXPECT_TRUE(answer.heads[0].log_partition.has_value());
    EXPECT_EQ(answer.scored_count, 80);
    EXPECT_EQ(answer.projected_key_count, 0);
  }
}

TEST_F(ModelHeadsTest, OutputGoesThroughValueAndOutputProjections) {
  Open(ScoreKind::kScaledDot);
  AttendQuery query = Query();
  query.weight_scope = WeightScope::kCatalog;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  const Doubles expected =
      TwinOutput(TwinWeights(ScoreKind::kScaledDot, items_), items_);
  ASSERT_THAT(answer.model_output, SizeIs(expected.size()));
  for (std::size_t d = 0; d < expected.size(); ++d) {
    EXPECT_NEAR(answer.model_output[d], expected[d], 6 * kHeadTolerance);
  }
  EXPECT_THAT(answer.heads[0].output, SizeIs(2));
}

TEST_F(ModelHeadsTest, CandidatesAreTheUnionOfTheHeadsShortlists) {
  Open(ScoreKind::kDot);
  AttendQuery query = Query();
  query.shortlist_count = 5;
  query.result_count = 5;
  ASSERT_OK_AND_ASSIGN(AttendAnswer answer, Ask(query));
  const std::vector<Doubles> all = TwinWeights(ScoreKind::kDot, items_);
  std::set<std::size_t> united;
  for (const Doubles& weights : all) {
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      return weights[a] > weights[b];
    });
    united.insert(order.begin(), order.begin() + 5);
  }
  ASSERT_GT(united.size(), 5u);
  // Weights sum to 1 over the union, so ask for all of it.
  query.shortlist_count = 5;
  double mean_of_masses = 0;
  for (const Doubles& weights : all) {
    for (const std::size_t row : united) mean_of_masses += weights[row] / 2;
  }
  EXPECT_NEAR(answer.shortlist_mass.value, mean_of_masses, kHeadTolerance);
  for (std::size_t i = 0; i < answer.items.size(); ++i) {
    const auto row = static_cast<std::size_t>(IndexOf(IdsOf(answer)[i]));
    double weight = 0;
    for (const Doubles& weights : all) {
      double mass = 0;
      for (const std::size_t other : united) mass += weights[other];
      weight += weights[row] / mass / 2;
    }
    EXPECT_NEAR(answer.items[i].weight, weight, kHeadTolerance);
  }
}

TEST_F(ModelHeadsTest, HardPicksTheGreatestMean) {
  Open(ScoreKind::kDot);
  AttendQuery query = Query();
  query.result_count = std::nullopt;
  query.select_kind = SelectKind::kHard;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  const std::vector<Doubles> all = TwinWeights(ScoreKind::kDot, items_);
  std::size_t best = 0;
  for (std::size_t row = 0; row < items_.size(); ++row) {
    if (all[0][row] + all[1][row] > all[0][best] + all[1][best]) best = row;
  }
  ASSERT_THAT(answer.items, SizeIs(1));
  EXPECT_EQ(IdsOf(answer)[0], items_[best].id);
  EXPECT_EQ(answer.items[0].weight, 1);
  EXPECT_EQ(answer.pooled_value->values, items_[best].value);
}

TEST_F(ModelHeadsTest, MinMassTakesTheFewestItemsByMeanWeight) {
  Open(ScoreKind::kDot);
  AttendQuery query = Query();
  query.result_count = std::nullopt;
  query.min_mass = 0.7;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  const std::vector<Doubles> all = TwinWeights(ScoreKind::kDot, items_);
  Doubles means;
  for (std::size_t row = 0; row < items_.size(); ++row) {
    means.push_back((all[0][row] + all[1][row]) / 2);
  }
  std::sort(means.rbegin(), means.rend());
  std::size_t fewest = 0;
  for (double mass = 0; mass < 0.7; ++fewest) mass += means[fewest];
  EXPECT_THAT(answer.items, SizeIs(fewest));
  EXPECT_GE(answer.returned_mass.value, 0.7);
  EXPECT_EQ(answer.limit_reason, LimitReason::kNone);
}

TEST_F(ModelHeadsTest, SampleDrawsFromTheMeanWeights) {
  Open(ScoreKind::kDot, 6);
  const std::vector<Doubles> all = TwinWeights(ScoreKind::kDot, items_);
  AttendQuery query = Query();
  query.select_kind = SelectKind::kSample;
  query.with_replacement = true;
  query.result_count = 10000;
  query.seed = 42;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  std::map<std::string, int> counts;
  for (const std::string& id : IdsOf(answer)) ++counts[id];
  // Pearson's chi-square with 5 degrees of freedom: beyond 20.5 with
  // probability 0.001.
  double chi_square = 0;
  for (std::size_t row = 0; row < 6; ++row) {
    const double expected = 10000 * (all[0][row] + all[1][row]) / 2;
    const double off = counts[items_[row].id] - expected;
    chi_square += off * off / expected;
  }
  EXPECT_LT(chi_square, 20.5);
  for (std::size_t i = 0; i < 20; ++i) {
    const auto row = static_cast<std::size_t>(IndexOf(IdsOf(answer)[i]));
    EXPECT_NEAR(*answer.items[i].log_weight,
                std::log((all[0][row] + all[1][row]) / 2), kHeadTolerance);
  }
}

TEST_F(ModelHeadsTest, TemperaturesMayDifferByHead) {
  Open(ScoreKind::kDot);
  AttendQuery query = Query();
  query.weight_scope = WeightScope::kCatalog;
  query.temperature = std::nullopt;
  query.head_temperatures = {0.3, 2};
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  const std::vector<Doubles> sharp = TwinWeights(ScoreKind::kDot, items_, 0.3);
  const std::vector<Doubles> flat = TwinWeights(ScoreKind::kDot, items_, 2);
  const auto row = static_cast<std::size_t>(IndexOf(IdsOf(answer)[0]));
  EXPECT_NEAR(answer.items[0].head_weights[0], sharp[0][row], kHeadTolerance);
  EXPECT_NEAR(answer.items[0].head_weights[1], flat[1][row], kHeadTolerance);
  query.head_temperatures = {0.3};
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("head_temperatures: got 1")));
}

TEST_F(ModelHeadsTest, EverythingMaskedIsZeroWithoutBiases) {
  Open(ScoreKind::kDot);
  AttendQuery query = Query();
  query.allow_list.emplace();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_THAT(answer.items, SizeIs(0));
  EXPECT_EQ(answer.model_output, std::vector<float>(7));
  EXPECT_EQ(answer.pooled_value->values, std::vector<float>(6));
  EXPECT_EQ(answer.returned_mass.value, 0);
  EXPECT_FALSE(answer.heads[0].log_partition.has_value());
}

TEST_F(ModelHeadsTest, KeysAreProjectedOnceWhenWritten) {
  Open(ScoreKind::kDot);
  for (int i = 0; i < 5; ++i) ASSERT_OK(Ask(Query()));
  EXPECT_EQ(catalog_->index_states()[0].projected_key_count, 40);
  EXPECT_EQ(catalog_->index_states()[0].active_model, model_.name);
}

TEST_F(ModelHeadsTest, ForeignModelScoresTheSameByProjectingEveryKey) {
  CatalogSchema schema = OneFieldSchema(4, ScoreKind::kScaledDot);
  schema.value_dim = 6;
  OpenCatalog(schema);
  items_ = ItemsForModel(40);
  Upsert(items_);
  AttendQuery query = Query();
  query.model = model_;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer foreign, Ask(query));
  EXPECT_EQ(foreign.projected_key_count, 80);
  EXPECT_EQ(foreign.model, model_.name);
  const std::vector<std::string> foreign_ids = IdsOf(foreign);

  disk_ = std::make_shared<FakeDisk>();
  Open(ScoreKind::kScaledDot);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer own, Ask(Query()));
  EXPECT_EQ(IdsOf(own), foreign_ids);
  EXPECT_EQ(own.model_output, foreign.model_output);
  for (std::size_t i = 0; i < own.items.size(); ++i) {
    EXPECT_EQ(own.items[i].weight, foreign.items[i].weight);
  }
}

TEST_F(ModelHeadsTest, IndexedHeadsFindTheSameItems) {
  options_.auto_ivf_min_count = 1000;
  CatalogSchema schema = OneFieldSchema(4, ScoreKind::kDot);
  schema.value_dim = 6;
  models_ = {model_};
  schema.key_fields[0].model = model_.name;
  OpenCatalog(schema, options_);
  Upsert(ItemsForModel(4000));
  catalog_->AwaitIndexes();
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
  // The merge took over the projections.
  EXPECT_EQ(catalog_->index_states()[0].projected_key_count, 4000);
  AttendQuery query = Query();
  query.recall = 1;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer best, Ask(query));
  EXPECT_EQ(best.index_kind, IndexKind::kIvf);
  const std::vector<std::string> best_ids = IdsOf(best);
  query.recall = 0.8;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer indexed, Ask(query));
  EXPECT_EQ(indexed.index_kind, IndexKind::kIvf);
  EXPECT_FALSE(indexed.complete);
  EXPECT_EQ(indexed.returned_mass.method, MassMethod::kEstimate);
  EXPECT_LT(indexed.scored_count, 8000);
  const std::vector<std::string> indexed_ids = IdsOf(indexed);
  AttendQuery exact = Query();
  exact.scan_mode = ScanMode::kExact;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer all, Ask(exact));
  EXPECT_EQ(all.scored_count, 8000);
  int found = 0;
  const std::vector<std::string> ids = IdsOf(all);
  EXPECT_EQ(best_ids, ids);
  const std::set<std::string> wanted(ids.begin(), ids.end());
  for (const std::string& id : indexed_ids) found += wanted.contains(id);
  EXPECT_GE(found, 8);
}

TEST_F(ModelHeadsTest, KeysOfHeadsMayLieOnDisk) {
  options_.auto_ivf_min_count = 1000;
  CatalogSchema schema = OneFieldSchema(4, ScoreKind::kDot);
  schema.value_dim = 6;
  models_ = {model_};
  schema.key_fields[0].model = model_.name;
  OpenCatalog(schema, options_);
  Upsert(ItemsForModel(2000));
  catalog_->AwaitIndexes();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer before, Ask(Query()));
  schema.key_fields[0].keys_on_disk = true;
  SetDefaults(schema.key_fields, models_);
  catalog_->AwaitIndexes();
  // The catalog has settled: nothing more needs training.
  EXPECT_FALSE(catalog_->index_states()[0].training);
  std::int64_t head_bytes = 0;
  const auto snapshot = catalog_->snapshot();
  for (const auto& head : snapshot->segments[0].segment->head_indexes[0]) {
    EXPECT_EQ(head->kind(), IndexKind::kIvf);
    head_bytes += 2000 * head->dim() * std::int64_t{sizeof(float)};
  }
  EXPECT_EQ(catalog_->index_states()[0].disk_bytes, head_bytes);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer after, Ask(Query()));
  EXPECT_EQ(IdsOf(after), IdsOf(before));
}

TEST_F(ModelHeadsTest, UnnormalisedWeightsThatSumToZeroStillPool) {
  Open(ScoreKind::kDot);
  AttendQuery query = VectorQuery({0, 0, 0, 0, 0});
  query.activation_kind = ActivationKind::kNone;
  // Logits, and so weights, come from b_Q alone; without b_Q all are 0.
  AttentionModel plain = *model_.model;
  std::get<MultiHeadProjections>(plain.kind).query.bias.clear();
  query.model = Named(plain, 7);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_EQ(answer.items[0].weight, 0);
  EXPECT_EQ(answer.model_output, plain.multi_head()->output->bias);
}

TEST_F(ModelHeadsTest, ItemsAreInTheOrderOfTheirWeightsInEveryScope) {
  Open(ScoreKind::kDot);
  for (const WeightScope scope :
       {WeightScope::kShortlist, WeightScope::kReturned,
        WeightScope::kCatalog}) {
    for (const bool by_mass : {false, true}) {
      AttendQuery query = Query();
      query.weight_scope = scope;
      query.result_count = 5;
      query.shortlist_count = 8;
      if (by_mass) query.min_mass = 0.9;
      ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
      double last = 1;
      for (const AttendedItem& item : answer.items) {
        EXPECT_LE(item.weight, last);
        last = item.weight;
      }
    }
  }
}

TEST_F(ModelHeadsTest, PooledValueThatOverflowsIsRefused) {
  Open(ScoreKind::kDot);
  AttentionModel huge = *model_.model;
  auto& heads = std::get<MultiHeadProjections>(huge.kind);
  for (float& weight : heads.value->weight.data) weight *= 1e20f;
  for (float& weight : heads.output->weight.data) weight *= 1e20f;
  AttendQuery query = Query();
  query.model = Named(huge, 9);
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("omit_pooled_value")));
  query.omit_pooled_value = true;
  EXPECT_OK(Ask(query));
}

TEST_F(ModelHeadsTest, QueryThatAModelMakesZeroIsSaidToBeSo) {
  Open(ScoreKind::kCosine);
  AttentionModel zero = *model_.model;
  Projection& of_query = std::get<MultiHeadProjections>(zero.kind).query;
  std::ranges::fill(of_query.weight.data, 0.0f);
  std::ranges::fill(of_query.bias, 0.0f);
  AttendQuery query = Query();
  query.model = Named(zero, 9);
  EXPECT_THAT(
      Ask(query),
      StatusIs(absl::StatusCode::kInvalidArgument,
               StartsWith("query: got a query that its model makes 0")));
}

TEST_F(ModelHeadsTest, UnionOfManyHeadsIsLimited) {
  Open(ScoreKind::kDot);
  AttendQuery query = Query();
  query.shortlist_count = 100000;
  ASSERT_OK(Ask(query));
  MultiHeadProjections many = *model_.model->multi_head();
  many.head_count = 256;
  RandomFloats random(1);
  many.query = random.Projection(256, 5);
  many.key = random.Projection(256, 4);
  many.value = random.Projection(256, 6);
  many.output = random.Projection(7, 256);
  query.model = Named({many}, 3);
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kResourceExhausted,
                                   HasSubstr("at most 256 with 256 heads")));
  query.shortlist_count = 256;
  EXPECT_OK(Ask(query));
}

TEST_F(ModelHeadsTest, QueryHasTheModelsDimension) {
  Open(ScoreKind::kDot);
  EXPECT_THAT(Ask(VectorQuery({1, 2, 3, 4})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("query.vector: got 4 components, want 5")));
  EXPECT_THAT(Ask(LikeQuery({"item1"})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("query.examples")));
}

TEST_F(ModelHeadsTest, EachTemperatureIsLookedAt) {
  Open(ScoreKind::kDot);
  for (int h = 0; h < 2; ++h) {
    AttendQuery query = Query();
    query.head_temperatures = {1, 1};
    query.head_temperatures[h] = 0;
    EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("head_temperatures[" +
                                               std::to_string(h) + "]")))
        << h;
  }
}

}  // namespace
}  // namespace attendant
