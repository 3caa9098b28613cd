// Score kinds with weights of their own, biases and activations.
#include <cmath>

#include "tests/core/catalog/catalog_fixture.h"
#include "tests/core/catalog/model_twin.h"
#include "tests/support/random_model.h"

namespace attendant {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Numbers are below 1 in size; a score sums at most 5 x 5 products: about 40
// roundings of numbers below 25.
constexpr double kTolerance = 25 * 40 * 0x1p-24;

NamedModel Named(AttentionModel model) {
  const float key_limit = KeyLimit(model);
  return {{"model", 1},
          std::make_shared<const AttentionModel>(std::move(model)),
          key_limit};
}

class ScoresTest : public CatalogFixture {
 protected:
  void Open(ScoreKind kind, NamedModel model, std::int64_t dim, int count) {
    CatalogSchema schema = OneFieldSchema(dim, kind);
    if (model.model != nullptr) {
      schema.key_fields[0].model = model.name;
      models_ = {model};
    }
    OpenCatalog(schema);
    RandomFloats random(3);
    items_.clear();
    for (int i = 0; i < count; ++i) {
      items_.push_back(
          MakeItem("item" + std::to_string(i), random.Vector(dim)));
    }
    Upsert(items_);
  }

  void ExpectTwin(const AttentionModel& model, ScoreKind kind,
                  const std::vector<float>& vector,
                  const AttendAnswer& answer) {
    ASSERT_THAT(answer.items, SizeIs(items_.size()));
    const std::vector<std::string> ids = IdsOf(answer);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto row = static_cast<std::size_t>(std::stoi(ids[i].substr(4)));
      const double expected = TwinSimilarity(model, kind, 0, ToDoubles(vector),
                                             ToDoubles(items_[row].keys[0]));
      EXPECT_NEAR(answer.items[i].similarity, expected, kTolerance);
      EXPECT_NEAR(answer.items[i].logit, expected / 0.5, 2 * kTolerance);
    }
  }

  AttendQuery Query(std::vector<float> vector) {
    AttendQuery query = VectorQuery(std::move(vector));
    query.temperature = 0.5;
    query.result_count = static_cast<std::int64_t>(items_.size());
    return query;
  }

  std::vector<Item> items_;
};

TEST_F(ScoresTest, BilinearProjectsTheQueryAlone) {
  const NamedModel model = Named(RandomBilinearModel(11));
  Open(ScoreKind::kBilinear, model, 5, 50);
  const std::vector<float> vector = RandomFloats(12).Vector(3);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(Query(vector)));
  ExpectTwin(*model.model, ScoreKind::kBilinear, vector, answer);
  EXPECT_EQ(catalog_->index_states()[0].projected_key_count, 0);
  EXPECT_EQ(answer.projected_key_count, 0);
}

TEST_F(ScoresTest, AdditiveEvaluatesANetworkForEachPair) {
  const NamedModel model = Named(RandomAdditiveModel(13));
  Open(ScoreKind::kAdditive, model, 5, 50);
  std::int64_t evaluated_count = 0;
  std::int64_t projected_count = 0;
  constexpr int kQueries = 7;
  for (int q = 0; q < kQueries; ++q) {
    const std::vector<float> vector =
        RandomFloats(static_cast<std::uint32_t>(q)).Vector(3);
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(Query(vector)));
    ExpectTwin(*model.model, ScoreKind::kAdditive, vector, answer);
    evaluated_count += answer.scored_count;
    EXPECT_EQ(answer.projected_key_count, 0);
    projected_count += answer.projected_query_count;
    double bound = 0;
    for (const float v : model.model->additive()->output_weight) {
      bound += std::abs(v);
    }
    for (const AttendedItem& item : answer.items) {
      EXPECT_LE(std::abs(item.similarity), bound * (1 + 1e-6));
    }
  }
  // m x n networks; m + n projections.
  EXPECT_EQ(evaluated_count, kQueries * 50);
  projected_count += catalog_->index_states()[0].projected_key_count;
  EXPECT_EQ(projected_count, kQueries + 50);
}

TEST_F(ScoresTest, RequestMayBringAnotherKindWithItsModel) {
  Open(ScoreKind::kDot, NamedModel(), 5, 50);
  const std::vector<float> vector = RandomFloats(12).Vector(3);
  for (const bool additive : {false, true}) {
    const ScoreKind kind =
        additive ? ScoreKind::kAdditive : ScoreKind::kBilinear;
    AttendQuery query = Query(vector);
    query.score_kind = kind;
    EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("model")));
    query.model =
        Named(additive ? RandomAdditiveModel(1) : RandomBilinearModel(1));
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
    ExpectTwin(*query.model.model, kind, vector, answer);
    EXPECT_EQ(answer.projected_key_count, additive ? 50 : 0);
    EXPECT_TRUE(answer.complete);
    query.score_kind = ScoreKind::kDot;
    EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("multi-head")));
  }
}

TEST_F(ScoresTest, AdditiveMayRunOnTheShortlistOfTheIndex) {
  RandomFloats random(4);
  AdditiveNetwork network{random.Matrix(4, 5), random.Matrix(4, 5),
                          random.Vector(4)};
  const NamedModel model = Named({network});
  Open(ScoreKind::kAdditive, model, 5, 50);
  AttendQuery query = Query(RandomFloats(12).Vector(5));
  query.result_count = 10;
  query.shortlist_count = 10;
  query.scan_mode = ScanMode::kIndex;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_THAT(answer.items, SizeIs(10));
  EXPECT_EQ(answer.returned_mass.method, MassMethod::kUnknown);
  EXPECT_FALSE(answer.log_partition.has_value());
  double sum = 0;
  double last = 1e9;
  for (const AttendedItem& item : answer.items) {
    sum += item.weight;
    EXPECT_LE(item.logit, last);
    last = item.logit;
  }
  EXPECT_NEAR(sum, 1, 1e-9);

  // The ten best by q . k.
  AttendQuery dots = query;
  dots.scan_mode = ScanMode::kExact;
  dots.score_kind = ScoreKind::kDot;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer best, Ask(dots));
  EXPECT_THAT(IdsOf(answer), ::testing::UnorderedElementsAreArray(IdsOf(best)));
  query.weight_scope = WeightScope::kCatalog;
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("mass of score_kind ADDITIVE")));
  // Options that such a shortlist can't guarantee are refused.
  query.weight_scope.reset();
  query.recall = 1;
  EXPECT_THAT(Ask(query),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("recall 1 with score_kind ADDITIVE")));
  query.recall = 0.9;
  EXPECT_OK(Ask(query));
  query.mass_method = MassMethod::kEstimate;
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("mass of score_kind ADDITIVE")));
}

TEST_F(ScoresTest, AdditiveInHeadsIsNoneForTheIndex) {
  RandomFloats random(4);
  AdditiveNetwork network{random.Matrix(4, 5), random.Matrix(4, 5),
                          random.Vector(4)};
  Open(ScoreKind::kAdditive, Named({network}), 5, 50);
  AttendQuery query = Query(RandomFloats(12).Vector(5));
  query.heads = {{"vec", {}, {}, {}}};
  EXPECT_OK(Ask(query));
  query.scan_mode = ScanMode::kIndex;
  EXPECT_THAT(
      Ask(query),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("score_kind ADDITIVE in heads needs every key")));
}

// The same as for every other way to score.
TEST_F(ScoresTest, AdditiveByTheIndexWithEverythingMaskedIsAnEmptyAnswer) {
  RandomFloats random(4);
  AdditiveNetwork network{random.Matrix(4, 5), random.Matrix(4, 5),
                          random.Vector(4)};
  Open(ScoreKind::kAdditive, Named({network}), 5, 50);
  AttendQuery query = Query(RandomFloats(12).Vector(5));
  for (const Item& item : items_) query.deny_list.push_back(item.id);
  for (const ScanMode mode : {ScanMode::kIndex, ScanMode::kExact}) {
    query.scan_mode = mode;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
    EXPECT_TRUE(answer.items.empty());
    EXPECT_THAT(answer.pooled_value->values, ElementsAre(0, 0, 0, 0, 0));
    EXPECT_EQ(answer.returned_mass.method, MassMethod::kExact);
    EXPECT_EQ(answer.returned_mass.value, 0);
    EXPECT_EQ(answer.shortlist_mass.method, MassMethod::kExact);
    EXPECT_EQ(answer.effective_item_count, 0);
    EXPECT_FALSE(answer.log_partition.has_value());
    EXPECT_EQ(answer.eligible_count, 0);
    EXPECT_TRUE(answer.complete);
    EXPECT_TRUE(answer.results_exact);
  }
}

class BiasTest : public CatalogFixture {
 protected:
  void SetUp() override {
    CatalogSchema schema = OneFieldSchema(1);
    schema.attributes = {{"popularity", AttributeType::kInt64},
                         {"boost", AttributeType::kDouble},
                         {"added", AttributeType::kTimestamp},
                         {"name", AttributeType::kString}};
    OpenCatalog(schema);
    Item popular = MakeItem("popular", {1});
    popular.attributes = {{0, std::int64_t{3}}, {1, 0.25}};
    Item fresh = MakeItem("fresh", {1});
    fresh.attributes = {{2, now_ - absl::Hours(24)}};
    Item future = MakeItem("future", {1});
    future.attributes = {{2, now_ + absl::Hours(24)}};
    Upsert({popular, fresh, future, MakeItem("plain", {1})});
  }

  std::map<std::string, AttendedItem> AskAll(const AttendQuery& query) {
    const auto answer = Ask(query);
    EXPECT_OK(answer);
    std::map<std::string, AttendedItem> items;
    const std::vector<std::string> ids = IdsOf(*answer);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      items[ids[i]] = answer->items[i];
    }
    return items;
  }

  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
};

TEST_F(BiasTest, NumbersAddToTheLogitTimesTheirFactor) {
  AttendQuery query = VectorQuery({2});
  query.biases = {{"popularity", 0.5, std::nullopt},
                  {"boost", std::nullopt, std::nullopt}};
  auto items = AskAll(query);
  EXPECT_EQ(items["popular"].logit, 2 + 1.5f + 0.25f);
  EXPECT_EQ(items["plain"].logit, 2);
  // The similarity is unchanged.
  EXPECT_EQ(items["popular"].similarity, 2);
  const double z = std::exp(1.75) + 3;
  EXPECT_NEAR(items["popular"].weight, std::exp(1.75) / z, 1e-6);
}

TEST_F(BiasTest, WeightHalvesWithEachHalfLife) {
  AttendQuery query = VectorQuery({2});
  query.biases = {{"added", std::nullopt, absl::Hours(12)}};
  query.time = now_;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_EQ(answer.time, now_);
  auto items = AskAll(query);
  // The answer states the server's time as used: in microseconds, as items have
  // it.
  query.time.reset();
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK_AND_ASSIGN(const AttendAnswer by_clock, Ask(query));
    EXPECT_EQ(by_clock.time,
              absl::FromUnixMicros(absl::ToUnixMicros(*by_clock.time)));
  }
  query.time = now_;
  // Two half-lives; a time in the future counts as now.
  EXPECT_NEAR(items["fresh"].weight / items["plain"].weight, 0.25, 1e-6);
  EXPECT_EQ(items["future"].logit, items["plain"].logit);
}

TEST_F(BiasTest, BiasIsPartOfTheMass) {
  AttendQuery query = VectorQuery({2});
  query.result_count = 1;
  query.biases = {{"popularity", 1.0, std::nullopt}};
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_NEAR(answer.returned_mass.value, std::exp(3) / (std::exp(3) + 3),
              1e-6);
}

TEST_F(BiasTest, HugeLogitsStillWeighOneInAll) {
  for (const double factor : {1e8, 1e14, 1e30}) {
    AttendQuery query = VectorQuery({2});
    query.deny_list = {"popular"};
    query.biases = {{"boost", factor, std::nullopt}};
    std::vector<Item> items;
    for (int i = 0; i < 4; ++i) {
      items.push_back(MakeItem("huge" + std::to_string(i), {1}));
      items.back().attributes = {{1, 1.0}};
    }
    Upsert(items);
    for (const WeightScope scope :
         {WeightScope::kShortlist, WeightScope::kCatalog}) {
      query.weight_scope = scope;
      ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
      double sum = 0;
      for (const AttendedItem& item : answer.items) sum += item.weight;
      EXPECT_NEAR(sum, 1, 1e-9) << factor;
      EXPECT_EQ(answer.items[0].weight, 0.25);
      EXPECT_NEAR(answer.returned_mass.value, 1, 1e-9);
      EXPECT_EQ(answer.pooled_value->values, std::vector<float>{1});
    }
  }
}

TEST_F(BiasTest, BadBiasesAreRefused) {
  const auto refused = [&](BiasTerm term, const std::string& field) {
    AttendQuery query = VectorQuery({2});
    query.biases = {std::move(term)};
    EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("biases[0]." + field)));
  };
  refused({"nothing", 1.0, std::nullopt}, "attribute");
  refused({"name", 1.0, std::nullopt}, "attribute");
  refused({"boost", std::nan(""), std::nullopt}, "factor");
  refused({"boost", std::nullopt, absl::Hours(1)}, "half_life");
  refused({"added", std::nullopt, std::nullopt}, "half_life");
  refused({"added", std::nullopt, absl::ZeroDuration()}, "half_life");
  refused({"added", 1.0, absl::Hours(1)}, "factor");
  AttendQuery query = VectorQuery({2});
  query.biases = {{"boost", 1e300, std::nullopt}};
  const auto overflowing = Ask(query);
  EXPECT_THAT(overflowing,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("biases: got a logit that overflows, want "
                                 "smaller factors")));
  EXPECT_EQ(FieldOf(overflowing.status()), "biases");
  EXPECT_EQ(ReasonOf(overflowing.status()), "LOGIT_OVERFLOW");
  // A logit that overflows even without biases is not the biases' fault.
  query.temperature = 1e-38;
  query.query = std::vector<float>{10};
  EXPECT_EQ(FieldOf(Ask(query).status()), "query");
  query.temperature.reset();
  query.biases.clear();
  query.time = now_;
  EXPECT_THAT(Ask(query),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("time")));
  query.time = std::nullopt;
  query.biases.resize(17);
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kResourceExhausted,
                                   HasSubstr("biases")));
}

TEST_F(BiasTest, ActivationsWeighEachItemOnItsOwn) {
  AttendQuery query = VectorQuery({2});
  query.biases = {{"popularity", 1.0, std::nullopt}};
  query.activation_kind = ActivationKind::kSigmoid;
  auto items = AskAll(query);
  EXPECT_NEAR(items["popular"].weight, 1 / (1 + std::exp(-5)), 1e-6);
  EXPECT_NEAR(items["plain"].weight, 1 / (1 + std::exp(-2)), 1e-6);
  query.activation_kind = ActivationKind::kNone;
  items = AskAll(query);
  EXPECT_EQ(items["popular"].weight, 5);
  EXPECT_EQ(items["plain"].weight, 2);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  // Keys, all 1, are pooled: the sum of the weights.
  EXPECT_THAT(answer.pooled_value->values, ElementsAre(11));
  EXPECT_EQ(answer.pooled_value->scope, WeightScope::kReturned);
  EXPECT_EQ(answer.returned_mass.method, MassMethod::kUnknown);
  EXPECT_FALSE(answer.log_partition.has_value());
  EXPECT_FALSE(answer.entropy.has_value());
}

TEST_F(BiasTest, ActivationsHaveNeitherScopeNorMass) {
  for (const ActivationKind kind :
       {ActivationKind::kSigmoid, ActivationKind::kNone}) {
    const auto refused = [&](AttendQuery query, const std::string& field) {
      query.activation_kind = kind;
      EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr(field)));
    };
    AttendQuery query = VectorQuery({2});
    query.weight_scope = WeightScope::kShortlist;
    refused(query, "weight_scope");
    query = VectorQuery({2});
    query.pool_scope = WeightScope::kCatalog;
    refused(query, "pool_scope");
    query = VectorQuery({2});
    query.min_mass = 0.5;
    refused(query, "min_mass");
    query = VectorQuery({2});
    query.select_kind = SelectKind::kSample;
    refused(query, "select_kind");
    query.select_kind = SelectKind::kHard;
    refused(query, "select_kind");
  }
}

}  // namespace
}  // namespace attendant
