#include "core/catalog/query/attend.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "tests/core/catalog/catalog_fixture.h"
#include "tests/support/look_counter.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rounding error of a weight: logits err by dim x 2^-24 x |q||k|, which for the
// 2-d unit-sized vectors here is below 1e-6, and a weight errs by as much.
constexpr double kTolerance = 1e-6;

class AttendTest : public CatalogFixture {
 protected:
  // Four compass points with values, so that answers can be checked by eye.
  void OpenCompass(ScoreKind kind = ScoreKind::kDot) {
    CatalogSchema schema = OneFieldSchema(2, kind);
    schema.value_dim = 3;
    OpenCatalog(schema);
    Upsert({MakeItem("east", {1, 0}, {1, 0, 0}),
            MakeItem("north", {0, 1}, {0, 1, 0}),
            MakeItem("west", {-1, 0}, {0, 0, 1}),
            MakeItem("south", {0, -1}, {5, 5, 5})});
  }
};

TEST_F(AttendTest, WeighsItemsByTheSoftmaxOfTheirLogits) {
  OpenCompass();
  AttendQuery query = VectorQuery({2, 1});
  query.temperature = 0.5;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_THAT(IdsOf(answer), ElementsAre("east", "north", "south", "west"));
  // Logits 4, 2, -2, -4.
  const double z = std::exp(4) + std::exp(2) + std::exp(-2) + std::exp(-4);
  EXPECT_NEAR(answer.items[0].weight, std::exp(4) / z, kTolerance);
  EXPECT_NEAR(answer.items[3].weight, std::exp(-4) / z, kTolerance);
  EXPECT_EQ(answer.items[0].similarity, 2);
  EXPECT_EQ(answer.items[0].logit, 4);
  EXPECT_NEAR(*answer.log_partition, std::log(z), kTolerance);
  EXPECT_EQ(answer.returned_mass.method, MassMethod::kExact);
  EXPECT_NEAR(answer.returned_mass.value, 1, kTolerance);
  EXPECT_EQ(answer.scored_count, 4);
  EXPECT_TRUE(answer.complete);
}

TEST_F(AttendTest, AgreesWithTheReference) {
  constexpr int kDim = 16;
  for (const ScoreKind kind :
       {ScoreKind::kDot, ScoreKind::kScaledDot, ScoreKind::kCosine}) {
    SCOPED_TRACE(Name(kind));
    disk_ = std::make_shared<FakeDisk>();
    OpenCatalog(OneFieldSchema(kDim, kind));
    const std::vector<Item> items = RandomItems(300, kDim, 7);
    Upsert(items);
    const std::vector<float> vector = RandomItems(1, kDim, 8)[0].keys[0];
    AttendQuery query = VectorQuery(vector);
    query.temperature = 0.7;
    query.result_count = 300;
    query.weight_scope = WeightScope::kCatalog;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));

    ReferenceMatrix keys{300, kDim, {}};
    for (const Item& item : items) {
      keys.data.insert(keys.data.end(), item.keys[0].begin(),
                       item.keys[0].end());
    }
    const std::vector<double> q(vector.begin(), vector.end());
    const ReferenceAnswer expected = AttendReference(q, keys, keys, kind, 0.7);
    // |q||k| is below 60 for these. A logit errs by at most (dim + 3) x 2^-24 x
    // 60 / temperature < 1e-4. Relative to themselves, exp(logit - max) and
    // sums of it err by that and by what the kernels' contract (SumExps) allows
    // up to the greatest gap to the maximum, and a weight, a quotient of the
    // two, by twice as much.
    constexpr double kLogitTolerance = 1e-4;
    constexpr double kMaxGap = 87;
    const double sum_tolerance = kLogitTolerance + std::ldexp(1.0, -21) +
                                 (kMaxGap + 9) * std::ldexp(1.0, -24);
    const double weight_tolerance = 2 * sum_tolerance;
    ASSERT_EQ(answer.items.size(), 300);
    const auto snapshot = catalog_->snapshot();
    for (const AttendedItem& item : answer.items) {
      const std::string id(
          snapshot->IdOf(item.address.segment, item.address.row));
      const int row = std::stoi(id.substr(4));
      EXPECT_NEAR(item.logit, expected.logits[row], kLogitTolerance);
      EXPECT_NEAR(item.weight, expected.weights[row],
                  weight_tolerance * expected.weights[row]);
    }
    EXPECT_NEAR(*answer.log_partition, expected.log_partition, sum_tolerance);
    // -sum w ln w changes by sum dw ln w, as the dw cancel out; the logarithms
    // are those of the logits.
    EXPECT_NEAR(*answer.entropy, expected.entropy,
                weight_tolerance * (1 + expected.entropy));
    // The square of a sum over a sum of squares.
    EXPECT_NEAR(*answer.effective_item_count, expected.effective_count,
                4 * sum_tolerance * expected.effective_count);
    for (int d = 0; d < kDim; ++d) {
      // Components are below 6; one rounding to float.
      EXPECT_NEAR(answer.pooled_value->values[d], expected.pooled[d],
                  6 * (weight_tolerance + std::ldexp(1.0, -23)));
    }
  }
}

TEST_F(AttendTest, HardIsALookup) {
  OpenCompass();
  AttendQuery query = VectorQuery({0.1F, 3});
  query.select_kind = SelectKind::kHard;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_THAT(IdsOf(answer), ElementsAre("north"));
  EXPECT_EQ(answer.items[0].weight, 1.0);
  EXPECT_THAT(answer.pooled_value->values, ElementsAre(0, 1, 0));
  // The mass is that of the soft attention, hence below 1.
  EXPECT_LT(answer.returned_mass.value, 1);
  query.result_count = 2;
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("result_count")));
  query.result_count = 1;
  query.pool_scope = WeightScope::kReturned;
  EXPECT_OK(Ask(query));
  query.pool_scope = WeightScope::kCatalog;
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("pool_scope")));
  query.weight_scope = WeightScope::kShortlist;
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("weight_scope")));
}

TEST_F(AttendTest, LowTemperatureReachesHardAndHighIsUniform) {
  OpenCompass();
  AttendQuery query = VectorQuery({2, 1});
  query.temperature = 1e-3;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer sharp, Ask(query));
  EXPECT_EQ(sharp.items[0].weight, 1.0);
  query.temperature = 1e9;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer flat, Ask(query));
  for (const AttendedItem& item : flat.items) {
    EXPECT_NEAR(item.weight, 0.25, kTolerance);
  }
  EXPECT_NEAR(*flat.effective_item_count, 4, kTolerance);
  EXPECT_NEAR(*flat.entropy, std::log(4), kTolerance);
}

TEST_F(AttendTest, ScopesSumToOneAndMassesSayTheRest) {
  OpenCatalog(OneFieldSchema(4));
  Upsert(RandomItems(200, 4, 3));
  const auto sum_of = [](const AttendAnswer& answer) {
    double sum = 0;
    for (const AttendedItem& item : answer.items) sum += item.weight;
    return sum;
  };
  AttendQuery query = VectorQuery({1, 0.5F, -1, 0.2F});
  query.result_count = 5;
  query.shortlist_count = 50;
  query.weight_scope = WeightScope::kReturned;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer returned, Ask(query));
  EXPECT_NEAR(sum_of(returned), 1, 1e-12);
  query.weight_scope = WeightScope::kCatalog;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer calibrated, Ask(query));
  EXPECT_NEAR(sum_of(calibrated), calibrated.returned_mass.value, 1e-12);
  query.weight_scope = WeightScope::kShortlist;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer shortlist, Ask(query));
  EXPECT_NEAR(sum_of(shortlist),
              calibrated.returned_mass.value / calibrated.shortlist_mass.value,
              1e-9);
  EXPECT_LT(calibrated.shortlist_mass.value, 1);
  EXPECT_LT(calibrated.returned_mass.value, calibrated.shortlist_mass.value);
  EXPECT_EQ(IdsOf(returned), IdsOf(calibrated));
}

TEST_F(AttendTest, PoolsOverTheScopeAskedFor) {
  OpenCompass();
  AttendQuery query = VectorQuery({1, 0});
  query.result_count = 1;
  query.shortlist_count = 1;
  query.pool_scope = WeightScope::kReturned;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer one, Ask(query));
  EXPECT_THAT(one.pooled_value->values, ElementsAre(1, 0, 0));
  query.pool_scope = WeightScope::kCatalog;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer all, Ask(query));
  const double z = std::exp(1) + 2 + std::exp(-1);
  EXPECT_NEAR(all.pooled_value->values[0], (std::exp(1) + 5) / z, 1e-5);
  EXPECT_NEAR(all.pooled_value->values[2], (std::exp(-1) + 5) / z, 1e-5);
  query.omit_pooled_value = true;
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("pool_scope: got CATALOG")));
  query.pool_scope = std::nullopt;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer none, Ask(query));
  EXPECT_FALSE(none.pooled_value.has_value());
}

TEST_F(AttendTest, PoolsTheKeyWhereThereIsNoValueAndSaysSo) {
  CatalogSchema schema = OneFieldSchema(2);
  schema.value_dim = 2;
  OpenCatalog(schema);
  Upsert({MakeItem("with", {1, 0}, {8, 8}), MakeItem("without", {1, 0})});
  for (const WeightScope scope :
       {WeightScope::kShortlist, WeightScope::kCatalog}) {
    AttendQuery query = VectorQuery({1, 0});
    query.pool_scope = scope;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
    EXPECT_EQ(answer.pooled_value->key_as_value_count, 1);
    EXPECT_NEAR(answer.pooled_value->values[0], 4.5, kTolerance);
    EXPECT_NEAR(answer.pooled_value->values[1], 4, kTolerance);
  }
}

TEST_F(AttendTest, ChangingAValueChangesNoWeight) {
  OpenCompass();
  AttendQuery query = VectorQuery({0.3F, 0.4F});
  ASSERT_OK_AND_ASSIGN(const AttendAnswer before, Ask(query));
  Upsert({MakeItem("east", {1, 0}, {9, 9, 9})});
  ASSERT_OK_AND_ASSIGN(const AttendAnswer after, Ask(query));
  EXPECT_EQ(IdsOf(before).size(), IdsOf(after).size());
  for (std::size_t i = 0; i < before.items.size(); ++i) {
    EXPECT_EQ(before.items[i].weight, after.items[i].weight);
  }
  EXPECT_NE(before.pooled_value->values, after.pooled_value->values);
}

TEST_F(AttendTest, EqualLogitsComeInTheOrderOfIds) {
  OpenCatalog(OneFieldSchema(1));
  std::vector<Item> items;
  for (int i = 300; i-- > 0;) {
    items.push_back(MakeItem(absl::StrCat(1000 + i), {1}));
  }
  Upsert(items);
  AttendQuery query = VectorQuery({0});
  query.result_count = 3;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_THAT(IdsOf(answer), ElementsAre("1000", "1001", "1002"));
  EXPECT_NEAR(answer.returned_mass.value, 0.01, 1e-12);
}

TEST_F(AttendTest, ExamplesCombineAndAreExcluded) {
  OpenCompass();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer,
                       Ask(LikeQuery({"east", "north"})));
  // q = (1, 1); each remaining item scores -1.
  EXPECT_THAT(IdsOf(answer), ElementsAre("south", "west"));
  EXPECT_EQ(answer.items[0].similarity, -1);
  EXPECT_EQ(answer.eligible_count, 2);
  EXPECT_NEAR(answer.returned_mass.value, 1, 1e-12);

  AttendQuery with = LikeQuery({"east", "north"});
  std::get<ExamplesQuery>(with.query).exclude_examples = false;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer all, Ask(with));
  EXPECT_THAT(IdsOf(all), ElementsAre("east", "north", "south", "west"));

  std::get<ExamplesQuery>(with.query).combine_kind =
      CombineKind::kSumOverSqrtCount;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer root, Ask(with));
  EXPECT_NEAR(root.items[0].similarity, 1 / std::sqrt(2.0), kTolerance);
  std::get<ExamplesQuery>(with.query).combine_kind = CombineKind::kUnit;
  std::get<ExamplesQuery>(with.query).examples[1].weight = 0;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer unit, Ask(with));
  EXPECT_NEAR(unit.items[0].similarity, 1, kTolerance);
}

TEST_F(AttendTest, UnitExamplesMayHaveTinyOrHugeWeights) {
  OpenCompass();
  for (const double weight : {1e-300, 1e300}) {
    AttendQuery query = LikeQuery({"east"});
    auto& examples = std::get<ExamplesQuery>(query.query);
    examples.examples[0].weight = weight;
    examples.combine_kind = CombineKind::kUnit;
    examples.exclude_examples = false;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
    EXPECT_NEAR(answer.items[0].similarity, 1, kTolerance);
  }
}

TEST_F(AttendTest, ScaledExamplesMayHaveASumThatNoFloatHolds) {
  OpenCompass();
  AttendQuery query = LikeQuery(std::vector<std::string>(4, "east"));
  auto& examples = std::get<ExamplesQuery>(query.query);
  for (Example& example : examples.examples) example.weight = 1e38;
  examples.combine_kind = CombineKind::kSumOverSqrtCount;
  examples.exclude_examples = false;
  query.score_kind = ScoreKind::kCosine;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_NEAR(answer.items[0].similarity, 1, kTolerance);
}

TEST_F(AttendTest, NegativeExamplesPushAway) {
  OpenCompass();
  AttendQuery query = LikeQuery({"east"});
  std::get<ExamplesQuery>(query.query).examples[0].weight = -1;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_EQ(IdsOf(answer).front(), "west");
}

TEST_F(AttendTest, UnknownExamplesAreListedOrRefused) {
  OpenCompass();
  AttendQuery query = LikeQuery({"east", "nowhere"});
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_THAT(answer.unknown_example_ids, ElementsAre("nowhere"));
  std::get<ExamplesQuery>(query.query).require_all = true;
  EXPECT_THAT(Ask(query),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nowhere")));
  EXPECT_THAT(Ask(LikeQuery({"nowhere"})),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("'nowhere' is not in the catalog")));
}

TEST_F(AttendTest, DenyAndAllowListsAreMasks) {
  OpenCompass();
  AttendQuery deny = VectorQuery({1, 0});
  deny.deny_list = {"east", "nowhere", "east"};
  ASSERT_OK_AND_ASSIGN(const AttendAnswer denied, Ask(deny));
  EXPECT_THAT(IdsOf(denied), ElementsAre("north", "south", "west"));
  EXPECT_EQ(denied.eligible_count, 3);
  EXPECT_NEAR(*denied.log_partition, std::log(2 + std::exp(-1)), kTolerance);

  AttendQuery allow = VectorQuery({1, 0});
  allow.allow_list = {"west", "east", "nowhere"};
  allow.deny_list = {"east"};
  ASSERT_OK_AND_ASSIGN(const AttendAnswer allowed, Ask(allow));
  EXPECT_THAT(IdsOf(allowed), ElementsAre("west"));
  EXPECT_EQ(allowed.eligible_count, 1);
  EXPECT_EQ(allowed.items[0].weight, 1.0);
}

TEST_F(AttendTest, EverythingMaskedIsAnEmptyAnswer) {
  OpenCompass();
  AttendQuery query = VectorQuery({1, 0});
  query.allow_list.emplace();
  for (const WeightScope scope :
       {WeightScope::kShortlist, WeightScope::kReturned,
        WeightScope::kCatalog}) {
    query.weight_scope = scope;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
    EXPECT_TRUE(answer.items.empty());
    EXPECT_THAT(answer.pooled_value->values, ElementsAre(0, 0, 0));
    EXPECT_EQ(answer.returned_mass.method, MassMethod::kExact);
    EXPECT_EQ(answer.returned_mass.value, 0);
    EXPECT_EQ(answer.effective_item_count, 0);
    EXPECT_FALSE(answer.log_partition.has_value());
    EXPECT_EQ(answer.eligible_count, 0);
  }
}

TEST_F(AttendTest, AnEmptyCatalogGivesAnEmptyAnswer) {
  OpenCatalog(OneFieldSchema(2));
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(VectorQuery({1, 0})));
  EXPECT_TRUE(answer.items.empty());
  EXPECT_THAT(answer.pooled_value->values, ElementsAre(0, 0));
}

TEST_F(AttendTest, ItemsWithoutAKeyInTheFieldAreNotEligible) {
  CatalogSchema schema = OneFieldSchema(2);
  schema.key_fields.push_back(schema.key_fields[0]);
  schema.key_fields[1].name = "other";
  OpenCatalog(schema);
  Item both = MakeItem("both", {1, 0});
  both.keys.push_back({0, 1});
  Item one = MakeItem("one", {});
  one.keys.push_back({0, 2});
  Upsert({both, one});
  ASSERT_OK_AND_ASSIGN(const AttendAnswer first, Ask(VectorQuery({1, 1})));
  EXPECT_THAT(IdsOf(first), ElementsAre("both"));
  EXPECT_EQ(first.eligible_count, 1);
  AttendQuery query = VectorQuery({1, 1});
  query.key_field = "other";
  ASSERT_OK_AND_ASSIGN(const AttendAnswer second, Ask(query));
  EXPECT_THAT(IdsOf(second), ElementsAre("one", "both"));
  query.key_field = "third";
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("one of vec, other")));
  EXPECT_THAT(Ask(LikeQuery({"one", "nowhere"})),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("none of 2 is an item with a key in 'vec'; "
                                 "'one' has no key there")));
}

TEST_F(AttendTest, TextIsFoldedInByTheFieldsEncoder) {
  OpenCatalog(OneFieldSchema(2));
  Upsert({MakeItem("clock", {1, 0}), MakeItem("lamp", {0, 1})});
  AttendQuery query;
  query.query = TextQuery{"a clock"};
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("text encoder")));
  TextEncoderParts parts;
  parts.terms = {"clock", "lamp"};
  parts.idf = {1, 1};
  parts.dim = 2;
  parts.projection = {1, 0, 0, 1};
  ASSERT_OK_AND_ASSIGN(TextEncoder encoder, TextEncoder::Create(parts));
  const auto fail = [&](absl::Status status) {
    MutexLock lock(&disk_->mutex);
    disk_->write_status = std::move(status);
  };
  fail(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_THAT(SetEncoder(*catalog_, encoder),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the disk is full")));
  EXPECT_EQ(catalog_->snapshot()->encoders[0], nullptr);
  fail(absl::OkStatus());
  ASSERT_OK(SetEncoder(*catalog_, std::move(encoder)));
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_EQ(IdsOf(answer).front(), "clock");
  query.query = TextQuery{"xyzzy"};
  EXPECT_THAT(Ask(query),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("term")));
  Restart();
  query.query = TextQuery{"lamp"};
  ASSERT_OK_AND_ASSIGN(const AttendAnswer again, Ask(query));
  EXPECT_EQ(IdsOf(again).front(), "lamp");
}

struct BadQuery {
  std::string name;
  void (*spoil)(AttendQuery& query);
  absl::StatusCode code;
  std::string message;
};

class AttendBadQueryTest : public CatalogFixture,
                           public ::testing::WithParamInterface<BadQuery> {};

TEST_P(AttendBadQueryTest, IsRefusedByName) {
  OpenCatalog(OneFieldSchema(2));
  Upsert({MakeItem("east", {1, 0}), MakeItem("huge", {3e38F, 0})});
  AttendQuery query = VectorQuery({0, 1});
  ASSERT_OK(Ask(query));
  GetParam().spoil(query);
  EXPECT_THAT(Ask(query),
              StatusIs(GetParam().code, HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    Attend, AttendBadQueryTest,
    ::testing::Values(
        BadQuery{"Dimension",
                 [](AttendQuery& q) { q.query = std::vector<float>{1}; },
                 kInvalid, "query.vector: got 1 components, want 2"},
        BadQuery{"NotANumber",
                 [](AttendQuery& q) {
                   q.query = std::vector<float>{1, std::nanf("")};
                 },
                 kInvalid, "query.vector"},
        BadQuery{"Infinity",
                 [](AttendQuery& q) {
                   q.query = std::vector<float>{
                       std::numeric_limits<float>::infinity(), 0};
                 },
                 kInvalid, "query.vector"},
        BadQuery{"Overflow",
                 [](AttendQuery& q) {
                   q.query = std::vector<float>{3e38F, 0};
                 },
                 kInvalid, "overflow"},
        BadQuery{"TinyTemperature",
                 [](AttendQuery& q) {
                   q.query = std::vector<float>{1, 0};
                   q.temperature = 1e-300;
                 },
                 kInvalid, "overflow"},
        BadQuery{"ZeroTemperature", [](AttendQuery& q) { q.temperature = 0; },
                 kInvalid, "temperature"},
        BadQuery{"NegativeTemperature",
                 [](AttendQuery& q) { q.temperature = -1; }, kInvalid,
                 "temperature"},
        BadQuery{"InfiniteTemperature",
                 [](AttendQuery& q) {
                   q.temperature = std::numeric_limits<double>::infinity();
                 },
                 kInvalid, "temperature"},
        BadQuery{"NoResults", [](AttendQuery& q) { q.result_count = 0; },
                 kInvalid, "result_count: got 0, want 1 to 10000"},
        BadQuery{"TooManyResults",
                 [](AttendQuery& q) { q.result_count = 10001; },
                 absl::StatusCode::kResourceExhausted,
                 "result_count: got 10001, want 1 to 10000"},
        BadQuery{"NegativeShortlist",
                 [](AttendQuery& q) { q.shortlist_count = -1; }, kInvalid,
                 "shortlist_count"},
        BadQuery{"ShortShortlist",
                 [](AttendQuery& q) { q.shortlist_count = 9; }, kInvalid,
                 "at least result_count"},
        BadQuery{"ZeroNormUnderCosine",
                 [](AttendQuery& q) {
                   q.query = std::vector<float>{0, 0};
                   q.score_kind = ScoreKind::kCosine;
                 },
                 kInvalid, "norm"},
        BadQuery{"NoExamples",
                 [](AttendQuery& q) { q.query = ExamplesQuery(); }, kInvalid,
                 "query.examples"},
        BadQuery{"NonFiniteExampleWeight",
                 [](AttendQuery& q) {
                   q = LikeQuery({"east"});
                   std::get<ExamplesQuery>(q.query).examples[0].weight =
                       std::nan("");
                 },
                 kInvalid, "query.examples.examples[0].weight"},
        BadQuery{"EmptyExampleId", [](AttendQuery& q) { q = LikeQuery({""}); },
                 kInvalid, "query.examples.examples[0].id"},
        BadQuery{"TooManyExamples",
                 [](AttendQuery& q) {
                   q = LikeQuery(std::vector<std::string>(10001, "east"));
                 },
                 absl::StatusCode::kResourceExhausted, "10001"},
        BadQuery{"EmptyDeniedId",
                 [](AttendQuery& q) {
                   q.deny_list = {"east", ""};
                 },
                 kInvalid, "deny_list.ids[1]"},
        BadQuery{"EmptyAllowedId", [](AttendQuery& q) { q.allow_list = {""}; },
                 kInvalid, "allow_list.ids[0]"},
        BadQuery{"TooManyDenied",
                 [](AttendQuery& q) { q.deny_list.resize(100001, "east"); },
                 absl::StatusCode::kResourceExhausted, "deny_list"}),
    [](const auto& test) { return test.param.name; });

TEST_F(AttendTest, StopsForDeadlineAndCancellation) {
  OpenCompass();
  Interrupt past;
  past.deadline = SteadyAfter(-absl::Seconds(1));
  EXPECT_THAT(Attend(*catalog_->snapshot(), VectorQuery({1, 0}), past),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("")));
  const std::atomic<bool> cancelled = true;
  Interrupt gone;
  gone.cancelled = &cancelled;
  EXPECT_THAT(Attend(*catalog_->snapshot(), VectorQuery({1, 0}), gone),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
}

class AttendIvfTest : public CatalogFixture {
 protected:
  static constexpr int kCount = 3000;

  void OpenIvf() {
    CatalogSchema schema = OneFieldSchema(8);
    schema.key_fields[0].index_kind = IndexKind::kIvf;
    OpenCatalog(schema);
    Upsert(RandomItems(kCount, 8, 11));
    catalog_->AwaitIndexes();
    ASSERT_OK(catalog_->merge_status());
    ASSERT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
  }
  std::vector<float> Vector() { return RandomItems(1, 8, 12)[0].keys[0]; }
};

TEST_F(AttendIvfTest, EstimatesTheMassOfWhatItDidNotScore) {
  OpenIvf();
  AttendQuery query = VectorQuery(Vector());
  query.shortlist_count = 10;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_EQ(answer.index_kind, IndexKind::kIvf);
  EXPECT_LT(answer.scored_count, kCount);
  EXPECT_FALSE(answer.complete);
  EXPECT_EQ(answer.returned_mass.method, MassMethod::kEstimate);
  query.scan_mode = ScanMode::kExact;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer exact, Ask(query));
  EXPECT_GE(*exact.log_partition, answer.log_partition_interval->lower_bound);
  EXPECT_LE(*exact.log_partition, answer.log_partition_interval->upper_bound);
}

TEST_F(AttendIvfTest, ExactAnswersScoreEveryKeyWithTheSameLogits) {
  OpenIvf();
  AttendQuery query = VectorQuery(Vector());
  ASSERT_OK_AND_ASSIGN(const AttendAnswer quick, Ask(query));
  query.scan_mode = ScanMode::kExact;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer exact, Ask(query));
  EXPECT_EQ(exact.scored_count, kCount);
  EXPECT_EQ(exact.returned_mass.method, MassMethod::kExact);
  std::map<std::string, float> logits;
  const std::vector<std::string> ids = IdsOf(exact);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    logits[ids[i]] = exact.items[i].logit;
  }
  const std::vector<std::string> found = IdsOf(quick);
  int shared = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!logits.contains(found[i])) continue;
    EXPECT_EQ(quick.items[i].logit, logits[found[i]]);
    ++shared;
  }
  EXPECT_GE(shared, 8);
}

TEST_F(AttendIvfTest, WidensWhenTheListsHoldTooFew) {
  OpenIvf();
  AttendQuery query = VectorQuery(Vector());
  query.result_count = kCount;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_EQ(answer.items.size(), kCount);
  EXPECT_TRUE(answer.complete);
}

TEST_F(AttendIvfTest, IndexModeRefusesWhatTheIndexCannotAnswer) {
  OpenIvf();
  AttendQuery query = VectorQuery(Vector());
  query.scan_mode = ScanMode::kIndex;
  ASSERT_OK(Ask(query));
  query.mass_method = MassMethod::kExact;
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("mass_method")));
  query.mass_method.reset();
  query.score_kind = ScoreKind::kCosine;
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("score_kind")));
}

TEST_F(AttendIvfTest, AnotherScoreKindIsScoredExactly) {
  OpenIvf();
  AttendQuery query = VectorQuery(Vector());
  query.score_kind = ScoreKind::kCosine;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_TRUE(answer.complete);
  EXPECT_LE(answer.items[0].similarity, 1 + 1e-6);
}

TEST_F(AttendTest, LooksAtTheInterruptWhileItReadsWhatTheQueryNames) {
  OpenCompass();
  const auto looks_of = [&](const AttendQuery& query) {
    LookCounter looks;
    EXPECT_OK(Attend(*catalog_->snapshot(), query, looks.interrupt()));
    return looks.count;
  };
  const int least = looks_of(LikeQuery({"east"}));
  // Reading a key may mean reading from a disk.
  EXPECT_GE(looks_of(LikeQuery(std::vector<std::string>(1000, "east"))),
            least + 62);
  std::vector<ItemId> ids = {"north"};
  for (int i = 0; i < 50000; ++i) ids.push_back("item" + std::to_string(i));
  AttendQuery allowed = LikeQuery({"east"});
  allowed.allow_list = ids;
  EXPECT_GE(looks_of(allowed), least + 10);
  AttendQuery denied = LikeQuery({"east"});
  denied.deny_list = ids;
  EXPECT_GE(looks_of(denied), least + 10);
}

}  // namespace
}  // namespace attendant
