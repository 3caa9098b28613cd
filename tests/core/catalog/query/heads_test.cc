// Attention of several heads over a catalog: a model's, or key fields'.
#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/attention/sampling/sampling.h"
#include "core/base/fail_point.h"
#include "core/catalog/query/answer.h"
#include "core/catalog/query/query_scan.h"
#include "core/catalog/query/scored_rows.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/core/catalog/model_twin.h"
#include "tests/support/look_counter.h"
#include "tests/support/random_model.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;

// Numbers of the random models and items are below 1 in size. A projected
// component sums 6 products, a logit 3 of these: below 150 roundings of numbers
// below 60, 60 x 150 x 2^-24 < 6e-4 at worst and far less in practice; weights
// err by that share of themselves.
constexpr double kTolerance = 6e-4;

NamedModel Named(AttentionModel model, std::int64_t version = 1) {
  const float key_limit = KeyLimit(model);
  return {{"model", version},
          std::make_shared<const AttentionModel>(std::move(model)),
          key_limit};
}

// Items with keys of 4 and values of 6, as RandomMultiHeadModel takes them.
std::vector<Item> ItemsForModel(int count) {
  RandomFloats random(99);
  std::vector<Item> items;
  for (int i = 0; i < count; ++i) {
    items.push_back(MakeItem("item" + std::to_string(i), random.Vector(4),
                             random.Vector(6)));
  }
  return items;
}

class ModelHeadsTest : public CatalogFixture {
 protected:
  void Open(ScoreKind kind, int item_count = 40) {
    CatalogSchema schema = OneFieldSchema(4, kind);
    schema.value_dim = 6;
    models_ = {model_};
    schema.key_fields[0].model = model_.name;
    OpenCatalog(schema);
    items_ = ItemsForModel(item_count);
    Upsert(items_);
  }

  AttendQuery Query() const {
    AttendQuery query = VectorQuery(vector_);
    query.result_count = 10;
    query.temperature = 0.3;
    query.include_head_weights = true;
    return query;
  }

  // Each head's softmax over `items`.
  std::vector<Doubles> TwinWeights(ScoreKind kind,
                                   const std::vector<Item>& items,
                                   double temperature = 0.3) const {
    const double scale = kind == ScoreKind::kScaledDot ? 1 / std::sqrt(3.0) : 1;
    std::vector<Doubles> weights;
    for (std::int64_t h = 0; h < 2; ++h) {
      Doubles logits;
      for (const Item& item : items) {
        logits.push_back(TwinSimilarity(*model_.model, kind, h,
                                        ToDoubles(vector_),
                                        ToDoubles(item.keys[0])) *
                         scale / temperature);
      }
      weights.push_back(TwinSoftmax(logits));
    }
    return weights;
  }

  // Concat of each head's W_V (sum of weight x value) + b_V, through W_O.
  Doubles TwinOutput(const std::vector<Doubles>& weights,
                     const std::vector<Item>& items) const {
    const MultiHeadProjections& heads = *model_.model->multi_head();
    Doubles joined;
    for (std::int64_t h = 0; h < heads.head_count; ++h) {
      Doubles pooled(2);
      for (std::size_t i = 0; i < items.size(); ++i) {
        // W_V before pooling here, after it in the engine: the same.
        const Doubles value =
            TwinPart(TwinProject(*heads.value, ToDoubles(items[i].value)),
                     heads.head_count, h);
        for (std::size_t d = 0; d < 2; ++d) {
          pooled[d] += weights[static_cast<std::size_t>(h)][i] * value[d];
        }
      }
      joined.insert(joined.end(), pooled.begin(), pooled.end());
    }
    return TwinProject(*heads.output, joined);
  }

  int IndexOf(const std::string& id) const { return std::stoi(id.substr(4)); }

  NamedModel model_ = Named(RandomMultiHeadModel(5));
  std::vector<float> vector_ = RandomFloats(17).Vector(5);
  std::vector<Item> items_;
};

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
      EXPECT_NEAR(item.head_weights[0], expected[0][row], kTolerance);
      EXPECT_NEAR(item.head_weights[1], expected[1][row], kTolerance);
      EXPECT_NEAR(item.weight, (expected[0][row] + expected[1][row]) / 2,
                  kTolerance);
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
    EXPECT_NEAR(answer.model_output[d], expected[d], 6 * kTolerance);
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
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return weights[a] > weights[b];
    });
    united.insert(order.begin(), order.begin() + 5);
  }
  ASSERT_GT(united.size(), 5u);
  // Weights sum to 1 over the union: ask for all of it.
  query.shortlist_count = 5;
  double mean_of_masses = 0;
  for (const Doubles& weights : all) {
    for (const std::size_t row : united) mean_of_masses += weights[row] / 2;
  }
  EXPECT_NEAR(answer.shortlist_mass.value, mean_of_masses, kTolerance);
  for (std::size_t i = 0; i < answer.items.size(); ++i) {
    const auto row = static_cast<std::size_t>(IndexOf(IdsOf(answer)[i]));
    double weight = 0;
    for (const Doubles& weights : all) {
      double mass = 0;
      for (const std::size_t other : united) mass += weights[other];
      weight += weights[row] / mass / 2;
    }
    EXPECT_NEAR(answer.items[i].weight, weight, kTolerance);
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
  EXPECT_FALSE(answer.result_cap_reached);
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
                std::log((all[0][row] + all[1][row]) / 2), kTolerance);
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
  EXPECT_NEAR(answer.items[0].head_weights[0], sharp[0][row], kTolerance);
  EXPECT_NEAR(answer.items[0].head_weights[1], flat[1][row], kTolerance);
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

TEST_F(ModelHeadsTest, AnotherModelIsSwappedInWhileTheFirstAnswers) {
  Open(ScoreKind::kDot, 3000);
  const NamedModel next = Named(RandomMultiHeadModel(6), 2);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer before, Ask(Query()));
  std::vector<KeyFieldSchema> fields = schema_.key_fields;
  fields[0].model = next.name;
  SetDefaults(fields, {next});
  // Whichever answers, it answers whole.
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(const AttendAnswer during, Ask(Query()));
    if (during.model == model_.name) {
      EXPECT_EQ(during.model_output, before.model_output);
    }
    // Rows that are written meanwhile are there under both.
    Upsert({MakeItem("late" + std::to_string(i), {0, 0, 0, 0},
                     {0, 0, 0, 0, 0, 0})});
  }
  catalog_->AwaitIndexes();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer after, Ask(Query()));
  EXPECT_EQ(after.model, next.name);
  EXPECT_EQ(after.eligible_count, 3020);
  EXPECT_EQ(catalog_->index_states()[0].active_model, next.name);
  EXPECT_FALSE(catalog_->index_states()[0].training);
  EXPECT_NE(after.model_output, before.model_output);

  // As if it had been there from the start.
  model_ = next;
  models_ = {next};
  schema_.key_fields[0].model = next.name;
  Restart();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer fresh, Ask(Query()));
  for (std::size_t d = 0; d < 7; ++d) {
    EXPECT_NEAR(fresh.model_output[d], after.model_output[d], 1e-5);
  }
}

TEST_F(ModelHeadsTest, TheStoreKnowsAnotherModelBeforeItAnswers) {
  Open(ScoreKind::kDot, 100);
  const auto set_disk = [&](absl::Status status) {
    MutexLock lock(&disk_->mutex);
    disk_->write_status = std::move(status);
  };
  const auto stored = [&]() -> std::optional<ModelName> {
    MutexLock lock(&disk_->mutex);
    const auto found = disk_->active_models.find("vec");
    if (found == disk_->active_models.end()) return std::nullopt;
    return found->second;
  };
  const NamedModel next = Named(RandomMultiHeadModel(6), 2);
  std::vector<KeyFieldSchema> fields = schema_.key_fields;
  fields[0].model = next.name;
  const auto full =
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk"));
  set_disk(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_THAT(catalog_->SetDefaults(fields, {next},
                                    []() -> absl::Status {
                                      ADD_FAILURE() << "stored";
                                      return absl::OkStatus();
                                    }),
              full);
  EXPECT_EQ(stored(), std::nullopt);
  set_disk(absl::OkStatus());
  {
    std::promise<void> go;
    background_.Add(
        nullptr, absl::ZeroDuration(),
        [gone = go.get_future().share()] { gone.wait(); }, Lane::kFirst);
    SetDefaults(fields, {next});
    EXPECT_EQ(stored(), model_.name);
    set_disk(absl::ResourceExhaustedError("the disk is full"));
    go.set_value();
  }
  catalog_->AwaitIndexes();
  EXPECT_THAT(catalog_->merge_status(), full);
  EXPECT_EQ(catalog_->index_states()[0].active_model, model_.name);
  EXPECT_EQ(stored(), model_.name);
  EXPECT_OK(Ask(Query()));
  set_disk(absl::OkStatus());
  Upsert({MakeItem("late", {0, 0, 0, 0}, {0, 0, 0, 0, 0, 0})});
  catalog_->AwaitIndexes();
  EXPECT_OK(catalog_->merge_status());
  EXPECT_EQ(catalog_->index_states()[0].active_model, next.name);
  EXPECT_EQ(stored(), next.name);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer after, Ask(Query()));
  EXPECT_EQ(after.eligible_count, 101);
}

// It may be deleted as soon as the catalog names the one before again.
TEST_F(ModelHeadsTest, AModelThatIsTakenBackWhileItsKeysAreMadeNeverAnswers) {
  Open(ScoreKind::kDot, 3000);
  const auto before = catalog_->snapshot();
  ASSERT_OK(ArmFailPoint("merge.before_publish=wait"));
  const absl::Cleanup go = [] { EXPECT_OK(ArmFailPoint("")); };
  std::vector<KeyFieldSchema> fields = schema_.key_fields;
  fields[0].model = {"model", 2};
  SetDefaults(fields, {Named(RandomMultiHeadModel(6), 2)});
  while (WaitingAtFailPoints() == 0) std::this_thread::yield();
  SetDefaults(schema_.key_fields, {model_});
  ASSERT_OK(ArmFailPoint(""));
  catalog_->AwaitIndexes();
  EXPECT_OK(catalog_->merge_status());
  // Nor was it swapped in, and the first one's keys made anew.
  EXPECT_EQ(catalog_->index_states()[0].projected_key_count, 3000);
  const auto after = catalog_->snapshot();
  EXPECT_EQ(after->models[0].name, model_.name);
  ASSERT_EQ(after->segments.size(), before->segments.size());
  EXPECT_EQ(after->segments[0].segment, before->segments[0].segment);
  {
    MutexLock lock(&disk_->mutex);
    EXPECT_EQ(disk_->active_models.at("vec"), model_.name);
  }
  // Rows go where they went.
  Upsert({MakeItem("late", {0, 0, 0, 0}, {0, 0, 0, 0, 0, 0})});
  EXPECT_EQ(catalog_->snapshot()->segments.size(), before->segments.size());
}

TEST_F(ModelHeadsTest, KeysThatTheModelWouldMakeInfiniteAreRefused) {
  Open(ScoreKind::kDot);
  const Item good = MakeItem("good", {1, 1, 1, 1}, {1, 1, 1, 1, 1, 1});
  const Item bad =
      MakeItem("bad", {3e38f, 3e38f, 3e38f, 3e38f}, {1, 1, 1, 1, 1, 1});
  EXPECT_THAT(catalog_->Upsert(std::vector<Item>{good, bad}, ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("items[1].keys[vec]: got a component too")));
  EXPECT_EQ(catalog_->snapshot()->item_count(), 40);
  ASSERT_OK_AND_ASSIGN(const ImportOutcome outcome,
                       catalog_->Import(std::vector<Item>{bad, good}));
  EXPECT_THAT(outcome.statuses[0],
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("keys[vec]: got a component too")));
  EXPECT_OK(outcome.statuses[1]);
  EXPECT_EQ(catalog_->snapshot()->item_count(), 41);
  ASSERT_OK(Ask(Query()));

  // The greatest key allowed is finite in every head.
  const float limit = catalog_->snapshot()->models[0].key_limit;
  Upsert(
      {MakeItem("great", {limit, -limit, limit, -limit}, {1, 1, 1, 1, 1, 1})});
  const auto snapshot = catalog_->snapshot();
  const RowAddress great = *snapshot->Find("great");
  for (int h = 0; h < 2; ++h) {
    for (const float component :
         snapshot->segments[great.segment].segment->IndexOf(0, h).Key(
             great.row)) {
      EXPECT_TRUE(std::isfinite(component));
    }
  }
  // A model that stored keys are too great for is not accepted, and writes are
  // held to what they were.
  AttentionModel huge = RandomMultiHeadModel(5);
  auto& heads = std::get<MultiHeadProjections>(huge.kind);
  for (float& weight : heads.key.weight.data) weight = 1e30f;
  const NamedModel next = Named(huge, 2);
  std::vector<KeyFieldSchema> fields = schema_.key_fields;
  fields[0].model = next.name;
  EXPECT_THAT(catalog_->SetDefaults(
                  fields, {next}, [] { return absl::InternalError("stored"); }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("key_fields[0].model")));
  Delete({"great"});
  Upsert(
      {MakeItem("great", {limit, -limit, limit, -limit}, {1, 1, 1, 1, 1, 1})});
  Delete({"great"});
  // Writes are held to its limit before it is stored, and no longer if it can't
  // be.
  const std::vector<Item> greatest = {
      MakeItem("great", {limit, 0, 0, 0}, {1, 1, 1, 1, 1, 1})};
  EXPECT_THAT(catalog_->SetDefaults(
                  fields, {next},
                  [&]() -> absl::Status {
                    EXPECT_THAT(catalog_->Upsert(greatest, ""),
                                StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("keys[vec]")));
                    return absl::ResourceExhaustedError("disk");
                  }),
              StatusIs(absl::StatusCode::kResourceExhausted, "disk"));
  EXPECT_EQ(catalog_->snapshot()->models[0].name, model_.name);
  EXPECT_OK(catalog_->Upsert(greatest, ""));
}

// The index of COSINE knows the norms of normalised keys, which are 1.
TEST_F(ModelHeadsTest, TheIndexOfNormalisedKeysHidesNoGreatOnes) {
  CatalogSchema schema = OneFieldSchema(4, ScoreKind::kCosine);
  schema.value_dim = 6;
  options_.auto_ivf_min_count = 1000;
  OpenCatalog(schema, options_);
  std::vector<Item> items = ItemsForModel(2000);
  items[7].keys[0] = {2e37f, 0, 0, 0};
  Upsert(items);
  catalog_->AwaitIndexes();
  ASSERT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
  AttentionModel large = RandomMultiHeadModel(5);
  auto& heads = std::get<MultiHeadProjections>(large.kind);
  for (float& weight : heads.key.weight.data) weight *= 100;
  const NamedModel next = Named(large);
  std::vector<KeyFieldSchema> fields = schema_.key_fields;
  fields[0].model = next.name;
  EXPECT_THAT(catalog_->SetDefaults(
                  fields, {next}, [] { return absl::InternalError("stored"); }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the key of item 'item7'")));
  Delete({"item7"});
  SetDefaults(fields, {next});
  catalog_->AwaitIndexes();
  EXPECT_OK(Ask(Query()));
}

TEST_F(ModelHeadsTest, AModelOutOfUseLimitsNoKeys) {
  Open(ScoreKind::kDot);
  const float limit = catalog_->snapshot()->models[0].key_limit;
  AttentionModel huge = RandomMultiHeadModel(5);
  auto& heads = std::get<MultiHeadProjections>(huge.kind);
  for (float& weight : heads.key.weight.data) weight = 1e30f;
  const NamedModel other = Named(huge, 2);
  const std::vector<Item> great = {
      MakeItem("great", {limit, 0, 0, 0}, {1, 1, 1, 1, 1, 1})};
  for (const NamedModel& model : {other, model_}) {
    std::vector<KeyFieldSchema> fields = schema_.key_fields;
    fields[0].model = model.name;
    ASSERT_OK(catalog_->SetDefaults(fields, {model}, [&] {
      EXPECT_FALSE(catalog_->Upsert(great, "").ok());
      return absl::OkStatus();
    }));
    catalog_->AwaitIndexes();
    ASSERT_EQ(catalog_->snapshot()->models[0].name, model.name);
  }
  EXPECT_OK(catalog_->Upsert(great, ""));
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
  // Merging took over the projections.
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
  // Settled: nothing more is wanted.
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
  // Logits and so weights are those of b_Q alone; without b_Q all are 0.
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

// Title and description as heads.
class FieldHeadsTest : public CatalogFixture {
 protected:
  void SetUp() override {
    CatalogSchema schema = OneFieldSchema(2);
    schema.key_fields[0].name = "title";
    schema.key_fields.push_back(schema.key_fields[0]);
    schema.key_fields[1].name = "text";
    OpenCatalog(schema);
    Upsert({Both("titled", {1, 0}, {0, 0}), Both("described", {0, 0}, {1, 0}),
            Both("neither", {0, 1}, {0, 1}), Both("untitled", {}, {0.5, 0})});
  }

  Item Both(std::string id, std::vector<float> title, std::vector<float> text) {
    Item item = MakeItem(std::move(id), std::move(title));
    item.keys.push_back(std::move(text));
    return item;
  }

  AttendQuery Query() {
    AttendQuery query = VectorQuery({3, 0});
    query.heads.push_back({"title", std::nullopt, std::nullopt});
    query.heads.push_back({"text", std::nullopt, std::nullopt});
    query.include_head_weights = true;
    return query;
  }
};

TEST_F(FieldHeadsTest, AnswerSaysWhichFieldEarnedEachItem) {
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(Query()));
  ASSERT_THAT(answer.heads, SizeIs(2));
  std::map<std::string, int> earned;
  double sum = 0;
  for (std::size_t i = 0; i < answer.items.size(); ++i) {
    earned[IdsOf(answer)[i]] =
        answer.heads[static_cast<std::size_t>(answer.items[i].head)].key_field;
    sum += answer.items[i].weight;
  }
  EXPECT_EQ(earned["titled"], 0);
  EXPECT_EQ(earned["described"], 1);
  EXPECT_EQ(earned["untitled"], 1);
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_EQ(answer.eligible_count, 4);
}

TEST_F(FieldHeadsTest, ItemWithoutAKeyWeighsNothingInThatHead) {
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(Query()));
  const double z_title = std::exp(3) + 1 + 1;
  const double z_text = 1 + std::exp(3) + 1 + std::exp(1.5);
  const std::vector<std::string> ids = IdsOf(answer);
  ASSERT_THAT(ids, ::testing::IsSupersetOf({"untitled", "titled"}));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const AttendedItem& item = answer.items[i];
    if (ids[i] == "untitled") {
      EXPECT_EQ(item.head_weights[0], 0);
      EXPECT_NEAR(item.head_weights[1], std::exp(1.5) / z_text, 1e-6);
    }
    if (ids[i] == "titled") {
      EXPECT_NEAR(item.weight, (std::exp(3) / z_title + 1 / z_text) / 2, 1e-6);
    }
  }
}

// Its weight is 1 in both.
TEST_F(FieldHeadsTest, HardSaysWhichFieldEarnedTheItem) {
  AttendQuery query = Query();
  query.select_kind = SelectKind::kHard;
  std::swap(query.heads[0], query.heads[1]);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  ASSERT_THAT(IdsOf(answer), ::testing::ElementsAre("titled"));
  EXPECT_EQ(answer.items[0].head, 1);
  EXPECT_NEAR(answer.items[0].logit, 3, 1e-6);
  EXPECT_THAT(answer.items[0].head_weights, ::testing::ElementsAre(1, 1));
}

// Its logit, which is its weight, is below that of no key.
TEST_F(FieldHeadsTest, AHeadWithoutTheItemEarnsNothing) {
  AttendQuery query = Query();
  query.query = std::vector<float>{-3, 0};
  query.activation_kind = ActivationKind::kNone;
  std::swap(query.heads[0], query.heads[1]);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  const std::vector<std::string> ids = IdsOf(answer);
  const auto at = std::find(ids.begin(), ids.end(), "untitled");
  ASSERT_NE(at, ids.end());
  const AttendedItem& item =
      answer.items[static_cast<std::size_t>(at - ids.begin())];
  EXPECT_EQ(item.head, 0);
  EXPECT_NEAR(item.logit, -1.5, 1e-6);
}

TEST_F(FieldHeadsTest, HeadsMayBringTheirOwnQueries) {
  AttendQuery query = Query();
  query.query = QueryForm();
  query.heads[0].query = QueryForm(std::vector<float>{0, 3});
  query.heads[1].query = QueryForm(std::vector<float>{0, 3});
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_EQ(IdsOf(answer)[0], "neither");
  ExamplesQuery examples;
  examples.examples = {{"neither", 1}};
  query.heads[1].query = QueryForm(examples);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer masked, Ask(query));
  EXPECT_THAT(IdsOf(masked),
              UnorderedElementsAreArray({"titled", "described", "untitled"}));
}

// The mean of log weights is beyond floats where a head's are near their end.
TEST_F(FieldHeadsTest, DrawsOfHugeLogitsHaveFiniteProbabilities) {
  Delete({"titled", "described", "neither", "untitled"});
  Upsert({Both("high", {3e38f, 0}, {3e38f, 0}),
          Both("low", {-3e38f, 0}, {-3e38f, 0})});
  AttendQuery query = Query();
  query.query = std::vector<float>{1, 0};
  query.include_head_weights = false;
  query.select_kind = SelectKind::kSample;
  query.result_count = 2;
  query.seed = 1;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_THAT(IdsOf(answer), ElementsAre("high", "low"));
  for (const AttendedItem& item : answer.items) {
    ASSERT_TRUE(item.log_weight.has_value());
    EXPECT_FALSE(std::isnan(*item.log_weight));
  }
  ASSERT_TRUE(answer.slate.has_value());
  EXPECT_FALSE(std::isnan(answer.slate->log_probability));
}

// Each first in another head: what they weigh is a sum of the same numbers, in
// another order.
TEST_F(FieldHeadsTest, EqualWeightsAreInTheOrderOfIds) {
  CatalogSchema schema;
  AttendQuery query = VectorQuery({1});
  for (const char* const name : {"a", "b", "c"}) {
    schema.key_fields.push_back(OneFieldSchema(1).key_fields[0]);
    schema.key_fields.back().name = name;
    query.heads.push_back({name, std::nullopt, std::nullopt});
  }
  disk_ = std::make_shared<FakeDisk>();
  OpenCatalog(schema);
  std::vector<std::string> ids = {"p", "q", "r"};
  do {
    for (float logit = 0.1f; logit < 8; logit += 0.7f) {
      std::vector<Item> items;
      for (std::size_t i = 0; i < 3; ++i) {
        Item& item = items.emplace_back();
        item.id = ids[i];
        item.keys.assign(3, {0.3f});
        item.keys[i] = {logit};
      }
      Upsert(items);
      for (const WeightScope scope :
           {WeightScope::kShortlist, WeightScope::kReturned,
            WeightScope::kCatalog}) {
        query.weight_scope = scope;
        ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
        const std::vector<std::string> found = IdsOf(answer);
        ASSERT_THAT(found, SizeIs(3));
        for (std::size_t i = 1; i < 3; ++i) {
          EXPECT_LT(std::pair(-answer.items[i - 1].weight, found[i - 1]),
                    std::pair(-answer.items[i].weight, found[i]))
              << logit;
        }
      }
    }
  } while (std::next_permutation(ids.begin(), ids.end()));
}

// Beside those of scans and samples.
TEST_F(FieldHeadsTest, ManyRowsAreLookedAtBetweenSomeThousand) {
  constexpr int kCount = 5 * 4096;
  disk_ = std::make_shared<FakeDisk>();
  OpenCatalog(schema_);
  std::vector<Item> items;
  for (int i = 0; i < kCount; ++i) {
    items.push_back(Both("item" + std::to_string(i), {0, 1}, {1, 0}));
  }
  Upsert(items);
  const auto snapshot = catalog_->snapshot();
  std::vector<RowAddress> rows;
  std::vector<std::uint64_t> noise_keys(kCount);
  for (const Item& item : items) rows.push_back(*snapshot->Find(item.id));
  for (const SelectKind kind : {SelectKind::kSoft, SelectKind::kSample}) {
    for (const WeightScope scope :
         {WeightScope::kShortlist, WeightScope::kCatalog}) {
      AttendQuery query = Query();
      query.select_kind = kind;
      query.weight_scope = scope;
      query.scan_mode = ScanMode::kExact;
      query.shortlist_count = kCount;
      ASSERT_OK_AND_ASSIGN(const QueryPlan plan,
                           PlanQuery(*snapshot, query, Interrupt()));
      LookCounter looks;
      const auto looks_of = [&](auto work) {
        looks.count = 0;
        EXPECT_OK(work());
        return looks.count;
      };
      QueryScan scan(*snapshot, plan, looks.interrupt());
      while (!scan.done()) {
        HeadScanTask task = scan.NextTask();
        ScanHeads(*snapshot, {&task, 1});
        ASSERT_OK(task.scan);
        const int count = looks_of([&] {
          return scan.Take(*std::move(task.scan), absl::ZeroDuration());
        });
        if (plan.draws_from_catalog()) {
          EXPECT_GE(count, 5);
        }
      }
      absl::StatusOr<HeadScans> found;
      const int finding = looks_of([&] {
        found = std::move(scan).Found();
        return found.status();
      });
      if (plan.draws_from_catalog()) {
        EXPECT_GE(finding, 5);
      }
      const int scoring = looks_of([&] {
        return ScoreInHeads(*snapshot, plan, rows, looks.interrupt()).status();
      });
      const int sampling = looks_of([&] {
        return SampleWithoutReplacement(std::vector<float>(kCount), noise_keys,
                                        10, 1, looks.interrupt())
            .status();
      });
      const int answering = looks_of([&] {
        return MakeAnswer(*snapshot, plan, *std::move(found), looks.interrupt())
            .status();
      });
      // To sort them.
      int least = scoring + 5;
      // Mean logits of the shortlist, and noise.
      if (kind == SelectKind::kSample) {
        least += sampling + (plan.draws_from_catalog() ? 5 : 10);
      }
      EXPECT_GE(answering, least);
    }
  }
}

TEST_F(FieldHeadsTest, BadHeadsAreRefused) {
  AttendQuery query = Query();
  query.heads[1].key_field = "nothing";
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("heads[1].key_field")));
  query = Query();
  query.key_field = "title";
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("key_field: got 'title', want")));
  // By the field that holds the vector.
  query = Query();
  query.score_kind = ScoreKind::kCosine;
  query.heads[1].query = QueryForm(std::vector<float>{0, 0});
  EXPECT_THAT(Ask(query),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("heads[1].query: got a query of norm 0")));
  query = Query();
  query.heads[1].query = QueryForm(std::vector<float>{3e38f, 0});
  query.temperature = 0.1;
  EXPECT_THAT(
      Ask(query),
      StatusIs(absl::StatusCode::kInvalidArgument,
               StartsWith("heads[1].query: got a logit that overflows")));
  // What no head takes from the request is not dropped.
  query = Query();
  for (QueryHead& head : query.heads) {
    head.query = query.query;
    head.temperature = 1;
  }
  ExamplesQuery unknown;
  unknown.examples = {{"no such item", std::nan("")}};
  for (const QueryForm& form :
       {query.query, QueryForm(unknown), QueryForm(TextQuery())}) {
    query.query = form;
    EXPECT_THAT(Ask(query),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "query: got one that no head takes, want nothing "
                         "where every head has its own"));
  }
  query.query = QueryForm();
  query.temperature = std::nan("");
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   StartsWith("temperature")));
  query = Query();
  query.heads.resize(17, query.heads[0]);
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kResourceExhausted,
                                   HasSubstr("heads")));
}

TEST_F(FieldHeadsTest, AnItemWithoutAKeyLeavesTheOthersTheirWeights) {
  Upsert({Both("a", {}, {0.5, 0})});  // before the others
  AttendQuery query = Query();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  const double z_title = std::exp(3) + 1 + 1;
  const double z_text = 1 + std::exp(3) + 1 + 2 * std::exp(1.5);
  ASSERT_TRUE(answer.pooled_value);
  EXPECT_NEAR(
      answer.pooled_value->values[0],
      (std::exp(3) / z_title + (std::exp(3) + std::exp(1.5)) / z_text) / 2,
      1e-5);
  EXPECT_NEAR(answer.pooled_value->values[1], (1 / z_title + 1 / z_text) / 2,
              1e-5);
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

class PooledHeadsTest : public CatalogFixture {};
TEST_F(PooledHeadsTest, HeadsOfOtherDimensionsAreNotPooled) {
  CatalogSchema schema = OneFieldSchema(3);
  schema.key_fields[0].name = "title";
  schema.key_fields.push_back(schema.key_fields[0]);
  schema.key_fields[1].name = "text";
  schema.key_fields[1].dim = 2;
  OpenCatalog(schema);
  Item item = MakeItem("a", {1, 0, 0});
  item.keys.push_back({1, 0});
  Upsert({item});
  AttendQuery query;
  query.heads.push_back(
      {"title", QueryForm(std::vector<float>{1, 0, 0}), std::nullopt});
  query.heads.push_back(
      {"text", QueryForm(std::vector<float>{1, 0}), std::nullopt});
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("heads[1].key_field")));
  query.omit_pooled_value = true;
  EXPECT_OK(Ask(query));
}

TEST_F(PooledHeadsTest, WhatIsDrawnTwiceIsPooledOnce) {
  OpenCatalog(OneFieldSchema(2));
  Upsert({MakeItem("a", {1, 0}), MakeItem("b", {0, 1})});
  AttendQuery query = VectorQuery({0.5, 0});
  query.select_kind = SelectKind::kSample;
  query.with_replacement = true;
  query.result_count = 20;
  query.seed = 1;
  query.pool_scope = WeightScope::kReturned;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  ASSERT_EQ(answer.items.size(), 20U);
  EXPECT_NEAR(answer.pooled_value->values[0] + answer.pooled_value->values[1],
              1, 1e-6);
}

TEST_F(FieldHeadsTest, WhoHasAnyOfTheKeysIsEligible) {
  Upsert({Both("only title", {1, 1}, {})});
  AttendQuery query = Query();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_EQ(answer.eligible_count, 5);
}

TEST_F(FieldHeadsTest, AnUnknownExampleIsNamedOnce) {
  AttendQuery query = Query();
  query.query = LikeQuery({"titled", "neither", "ghost"}).query;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_THAT(answer.unknown_example_ids, ElementsAre("ghost"));
  EXPECT_FALSE(answer.time);
}

}  // namespace
}  // namespace attendant
