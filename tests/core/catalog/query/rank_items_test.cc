#include "core/catalog/query/rank_items.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/catalog/filter/parse_filter.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/segments/item_keys.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/support/look_counter.h"
#include "tests/support/random_model.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

absl::Time At(std::int64_t seconds) { return absl::FromUnixSeconds(seconds); }

class RankItemsTest : public CatalogFixture {
 protected:
  // Cameras lie along the first axis, swimwear along the second.
  void SetUp() override {
    CatalogSchema schema = OneFieldSchema(2);
    schema.attributes = {{"price", AttributeType::kDouble}};
    OpenCatalog(schema);
    Upsert({MakeItem("camera", {4, 0}), MakeItem("lens", {3, 0}),
            MakeItem("tripod", {3.5, .5}), MakeItem("goggles", {0, 4}),
            MakeItem("fins", {.5, 3.5}), MakeItem("towel", {0, 3})});
  }

  RankQuery Query(std::vector<std::string> candidates,
                  std::vector<std::string> history) {
    RankQuery query;
    query.candidates = std::move(candidates);
    std::int64_t second = 100;
    for (std::string& id : history) {
      query.history.push_back({std::move(id), At(second++)});
    }
    return query;
  }

  absl::StatusOr<RankAnswer> Rank(const RankQuery& query) {
    return RankItems(*catalog_->snapshot(), query, Interrupt());
  }

  using CatalogFixture::IdsOf;
  std::vector<std::string> IdsOf(const RankAnswer& answer) {
    const auto snapshot = catalog_->snapshot();
    std::vector<std::string> ids;
    for (const RankedItem& item : answer.items) {
      ids.emplace_back(snapshot->IdOf(item.address.segment, item.address.row));
    }
    return ids;
  }
};

TEST_F(RankItemsTest, EachCandidateAttendsToTheEventsOfItsKind) {
  RankQuery query =
      Query({"camera", "goggles"}, {"lens", "fins", "tripod", "towel"});
  query.attribution_count = 4;
  ASSERT_OK_AND_ASSIGN(const RankAnswer answer, Rank(query));
  ASSERT_THAT(answer.items, SizeIs(2));
  const std::vector<std::string> ids = IdsOf(answer);
  for (std::size_t i = 0; i < 2; ++i) {
    const bool camera = ids[i] == "camera";
    double on_kind = 0;
    for (const EventAttribution& event : answer.items[i].events) {
      EXPECT_FALSE(event.profile);
      // lens and tripod are events 0 and 2.
      if ((event.index % 2 == 0) == camera) on_kind += event.weight;
    }
    EXPECT_GT(on_kind, .5) << ids[i];
  }
  EXPECT_EQ(answer.scored_count, 8);
}

TEST_F(RankItemsTest, OrdersByScoreThenId) {
  Upsert({MakeItem("a twin", {4, 0})});
  const RankQuery query =
      Query({"towel", "camera", "goggles", "a twin"}, {"lens"});
  ASSERT_OK_AND_ASSIGN(RankAnswer answer, Rank(query));
  // One event, weight 1: the score is candidate . (3, 0).
  EXPECT_THAT(IdsOf(answer),
              ElementsAre("a twin", "camera", "goggles", "towel"));
  EXPECT_EQ(answer.items[0].score, 12);
  EXPECT_EQ(answer.items[2].score, 0);
  EXPECT_THAT(answer.items[0].interest, ElementsAre(3, 0));
  RankQuery two = query;
  two.result_count = 2;
  ASSERT_OK_AND_ASSIGN(answer, Rank(two));
  EXPECT_THAT(IdsOf(answer), ElementsAre("a twin", "camera"));
}

TEST_F(RankItemsTest, LooksAtTheInterruptAtEachVectorThatItCopies) {
  const RankQuery query = Query({"camera", "goggles", "fins"},
                                {"lens", "fins", "lens", "towel", "tripod"});
  LookCounter looks;
  ASSERT_OK(RankItems(*catalog_->snapshot(), query, looks.interrupt()));
  EXPECT_GE(looks.count, 3 + 5 + 3);
}

TEST_F(RankItemsTest, KeysOfItemsLooksAtTheInterruptAtEachKey) {
  const std::vector<ItemId> ids = {"camera", "goggles", "camera"};
  LookCounter looks;
  ASSERT_OK(
      KeysOfItems(*catalog_->snapshot(), 0, ids, "ids", looks.interrupt()));
  EXPECT_EQ(looks.count, 3);
}

TEST_F(RankItemsTest, CandidatesMayBeTheShortlistOfAQuery) {
  RankQuery query = Query({}, {"camera"});
  query.candidates = CandidateQuery{{0, 1}, 3};
  ASSERT_OK_AND_ASSIGN(const RankAnswer answer, Rank(query));
  // In order of similarity to the camera.
  EXPECT_THAT(IdsOf(answer), ElementsAre("fins", "goggles", "towel"));
}

// A customer who bought the towel needs no other one.
TEST_F(RankItemsTest, AQueryLeavesOutEventsUnlessItIsTold) {
  RankQuery query = Query({}, {"towel", "fins", "unknown"});
  query.history.push_back({std::vector<float>{0, 1}, At(0)});
  query.profile.push_back({ItemId("camera")});
  query.candidates = CandidateQuery{{0, 1}, 4};
  const auto ids = [&] {
    const auto answer = Rank(query);
    EXPECT_OK(answer.status());
    std::vector<std::string> sorted =
        answer.ok() ? IdsOf(*answer) : std::vector<std::string>();
    std::ranges::sort(sorted);
    return sorted;
  };
  // Other items take their place.
  EXPECT_THAT(ids(), ElementsAre("goggles", "lens", "tripod"));
  // The event of the fins, at 101, is in the future.
  query.time = At(100);
  EXPECT_THAT(ids(), ElementsAre("fins", "goggles", "lens", "tripod"));
  std::get<CandidateQuery>(query.candidates).exclude_events = false;
  EXPECT_THAT(ids(), ElementsAre("fins", "goggles", "towel", "tripod"));
}

TEST_F(RankItemsTest, AQueryIsMaskedAsAnAttendQueryIs) {
  const auto priced = [](const char* id, std::vector<float> key, double price) {
    Item item = MakeItem(id, std::move(key));
    item.attributes = {{0, price}};
    return item;
  };
  Upsert({priced("goggles", {0, 4}, 2), priced("fins", {.5, 3.5}, 3),
          priced("towel", {0, 3}, 1)});
  RankQuery query = Query({}, {"lens"});
  CandidateQuery asked{{0, 1}, 3};
  asked.deny_list = {"towel", "unknown"};
  query.candidates = asked;
  ASSERT_OK_AND_ASSIGN(RankAnswer answer, Rank(query));
  EXPECT_THAT(IdsOf(answer), ElementsAre("tripod", "fins", "goggles"));
  ASSERT_OK_AND_ASSIGN(
      asked.filter, ParseFilter("price < 2.5", *catalog_->snapshot()->schema));
  query.candidates = asked;
  ASSERT_OK_AND_ASSIGN(answer, Rank(query));
  EXPECT_THAT(IdsOf(answer), ElementsAre("goggles"));
}

// A query over a catalog without items finds no candidates, and the rest of the
// request is checked all the same.
TEST_F(RankItemsTest, WithoutCandidatesTheRestIsCheckedAllTheSame) {
  RankQuery query;
  query.candidates = CandidateQuery{{0, 1}, 3};
  for (int second = 1; second <= 3; ++second) {
    query.history.push_back({std::vector<float>{1, 2}, At(second)});
  }
  query.time = At(2);
  Delete({"camera", "lens", "tripod", "goggles", "fins", "towel"});
  const auto field = [&](const std::function<void(RankQuery&)>& change) {
    RankQuery changed = query;
    change(changed);
    return FieldOf(Rank(changed).status());
  };
  EXPECT_EQ(field([](RankQuery& q) { q.temperature = -1; }), "temperature");
  EXPECT_EQ(field([](RankQuery& q) { q.attribution_count = 1000; }),
            "attribution_count");
  EXPECT_EQ(field([](RankQuery& q) { q.score_kind = ScoreKind::kAdditive; }),
            "score_kind");
  EXPECT_EQ(field([](RankQuery& q) { q.approximation = LinformerOptions(); }),
            "attribution_count");
  for (const Approximation& approximation :
       {Approximation(), Approximation(LshAttentionOptions()),
        Approximation(LinformerOptions())}) {
    query.approximation = approximation;
    if (std::holds_alternative<LinformerOptions>(approximation)) {
      query.attribution_count = 0;
    }
    ASSERT_OK_AND_ASSIGN(const RankAnswer answer, Rank(query));
    EXPECT_THAT(answer.items, IsEmpty());
    EXPECT_EQ(answer.future_event_count, 1);
    EXPECT_EQ(answer.scored_count, 0);
  }
}

TEST_F(RankItemsTest, LaterEventsAreMaskedAndTheProfileIsNot) {
  RankQuery query = Query({"camera"}, {"lens", "goggles", "fins"});
  query.profile.push_back({std::vector<float>{0, 2}, absl::InfiniteFuture()});
  query.time = At(100);
  query.attribution_count = 10;
  ASSERT_OK_AND_ASSIGN(const RankAnswer answer, Rank(query));
  EXPECT_EQ(answer.future_event_count, 2);
  ASSERT_THAT(answer.items[0].events, SizeIs(2));
  EXPECT_FALSE(answer.items[0].events[0].profile);
  EXPECT_EQ(answer.items[0].events[0].index, 0);
  EXPECT_TRUE(answer.items[0].events[1].profile);
  EXPECT_EQ(answer.items[0].events[1].index, 0);
}

TEST_F(RankItemsTest, UnknownEventsAreSkippedAndListed) {
  const RankQuery query = Query({"camera"}, {"gone", "lens", "lost"});
  ASSERT_OK_AND_ASSIGN(RankAnswer answer, Rank(query));
  EXPECT_THAT(answer.unknown_item_ids, ElementsAre("gone", "lost"));
  ASSERT_THAT(answer.items[0].events, SizeIs(1));
  EXPECT_EQ(answer.items[0].events[0].index, 1) << "of the request";
  // No event is left: zeros, not an error.
  ASSERT_OK_AND_ASSIGN(answer, Rank(Query({"camera"}, {"gone"})));
  EXPECT_THAT(answer.items[0].interest, ElementsAre(0, 0));
  EXPECT_EQ(answer.items[0].score, 0);
  EXPECT_THAT(answer.items[0].events, IsEmpty());
}

TEST_F(RankItemsTest, ValuesArePooledAndKeysWhereThereAreNone) {
  CatalogSchema schema = OneFieldSchema(2);
  schema.value_dim = 2;
  OpenCatalog(schema);
  Upsert({MakeItem("with", {1, 0}, {7, 8}), MakeItem("without", {1, 0})});
  ASSERT_OK_AND_ASSIGN(RankAnswer answer, Rank(Query({"with"}, {"with"})));
  EXPECT_THAT(answer.items[0].interest, ElementsAre(7, 8));
  ASSERT_OK_AND_ASSIGN(answer, Rank(Query({"with"}, {"without"})));
  EXPECT_THAT(answer.items[0].interest, ElementsAre(1, 0));
}

TEST_F(RankItemsTest, ValuesMayHaveADimensionOfTheirOwn) {
  CatalogSchema schema = OneFieldSchema(2);
  schema.value_dim = 3;
  OpenCatalog(schema);
  Upsert({MakeItem("a", {2, 0}, {1, 2, 3})});
  RankQuery query = Query({"a"}, {"a"});
  ASSERT_OK_AND_ASSIGN(const RankAnswer answer, Rank(query));
  EXPECT_THAT(answer.items[0].interest, ElementsAre(1, 2, 3));
  // candidate . interest is undefined: the score is the only event's logit, 2 x
  // 2.
  EXPECT_EQ(answer.items[0].score, 4);
  query.history.push_back({std::vector<float>{1, 1}, At(1)});
  EXPECT_THAT(Rank(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("history[1].vector")));
}

// Items with keys [4] and values [6], as RandomMultiHeadModel takes them.
std::vector<Item> ItemsForModel() {
  RandomFloats random(7);
  std::vector<Item> items;
  for (int i = 0; i < 20; ++i) {
    items.push_back(MakeItem("item" + std::to_string(i), random.Vector(4),
                             random.Vector(6)));
  }
  return items;
}

class RankItemsOfAModelTest : public RankItemsTest {
 protected:
  void SetUp() override {}

  void Open(std::vector<NamedModel> models) {
    CatalogSchema schema = OneFieldSchema(4);
    schema.value_dim = 6;
    models_ = std::move(models);
    if (!models_.empty()) schema.key_fields[0].model = models_[0].name;
    OpenCatalog(schema);
    Upsert(ItemsForModel());
  }

  const NamedModel model_ = {
      {"model", 1},
      std::make_shared<const AttentionModel>(RandomMultiHeadModel(3))};
};

TEST_F(RankItemsOfAModelTest, KeysAreTheItemsOwn) {
  RandomFloats random(8);
  MultiHeadProjections square;
  square.head_count = 2;
  square.query = random.Projection(4, 4);
  square.key = random.Projection(4, 4);
  const AttentionModel asked = {square};
  for (const AttentionModel* model :
       std::vector<const AttentionModel*>{nullptr, &asked}) {
    RankQuery query =
        Query({"item3", "item1", "item4"}, {"item1", "item5", "item9"});
    query.model = model;
    Open({});
    ASSERT_OK_AND_ASSIGN(const RankAnswer want, Rank(query));
    const std::vector<std::string> ids = IdsOf(want);
    Open({model_});
    ASSERT_OK_AND_ASSIGN(const RankAnswer answer, Rank(query));
    EXPECT_EQ(IdsOf(answer), ids);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(answer.items[i].score, want.items[i].score);
      EXPECT_EQ(answer.items[i].interest, want.items[i].interest);
    }
  }
}

TEST_F(RankItemsOfAModelTest, AQueryForCandidatesIsWhatTheModelTakes) {
  Open({model_});
  const std::vector<float> vector = RandomFloats(9).Vector(5);
  AttendQuery attend = VectorQuery(vector);
  attend.result_count = 4;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer attended, Ask(attend));
  RankQuery query = Query({}, {"item2", "item6"});
  query.candidates = CandidateQuery{
      .vector = vector, .candidate_count = 4, .exclude_events = false};
  ASSERT_OK_AND_ASSIGN(const RankAnswer answer, Rank(query));
  EXPECT_THAT(IdsOf(answer),
              testing::UnorderedElementsAreArray(IdsOf(attended)));
  query.candidates = CandidateQuery{{1, 2, 3, 4}, 4};
  EXPECT_EQ(FieldOf(Rank(query).status()), "candidates.query.vector");
}

TEST_F(RankItemsOfAModelTest, ManyHeadsFindFewerCandidates) {
  MultiHeadProjections heads;
  heads.head_count = 256;
  heads.query = heads.key = RandomFloats(4).Projection(256, 4);
  Open({{{"many", 1},
         std::make_shared<const AttentionModel>(AttentionModel{heads})}});
  RankQuery query = Query({}, {"item2"});
  query.candidates = CandidateQuery{{1, 2, 3, 4}, 256};
  ASSERT_OK_AND_ASSIGN(const RankAnswer answer, Rank(query));
  EXPECT_THAT(answer.items, SizeIs(19));  // all items except the event
  query.candidates = CandidateQuery{{1, 2, 3, 4}, 257};
  const absl::Status status = Rank(query).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FieldOf(status), "candidates.query.candidate_count");
}

TEST_F(RankItemsTest, UnderCosineAnItemOfNormZeroHasSimilarityZero) {
  Upsert({MakeItem("nowhere", {0, 0})});
  RankQuery query = Query({"camera", "nowhere"}, {"lens", "nowhere"});
  query.score_kind = ScoreKind::kCosine;
  query.temperature = 1 / std::log(3.0);
  ASSERT_OK_AND_ASSIGN(const RankAnswer answer, Rank(query));
  ASSERT_THAT(IdsOf(answer), ElementsAre("camera", "nowhere"));
  // Logits ln 3, 0 and 0, 0 for values (3, 0), (0, 0).
  EXPECT_NEAR(answer.items[0].interest[0], 2.25, 1e-5);
  EXPECT_NEAR(answer.items[1].interest[0], 1.5, 1e-5);
}

// A long key of another direction has a great dot product, and a small cosine.
TEST_F(RankItemsTest, UnderCosineScoresAreCosines) {
  Upsert({MakeItem("event", {1, 0}), MakeItem("near", {1, 0.05F}),
          MakeItem("long", {10, 10}), MakeItem("nowhere", {0, 0})});
  RankQuery query = Query({"near", "long", "nowhere"}, {"event"});
  query.score_kind = ScoreKind::kCosine;
  ASSERT_OK_AND_ASSIGN(const RankAnswer cosines, Rank(query));
  EXPECT_THAT(IdsOf(cosines), ElementsAre("near", "long", "nowhere"));
  EXPECT_NEAR(cosines.items[0].score, 1 / std::hypot(1, 0.05), 1e-6);
  EXPECT_NEAR(cosines.items[1].score, 1 / std::sqrt(2.0), 1e-6);
  EXPECT_EQ(cosines.items[2].score, 0);
  query.approximation = LshAttentionOptions();
  query.candidates = std::vector<ItemId>{"near", "long"};
  ASSERT_OK_AND_ASSIGN(const RankAnswer approximate, Rank(query));
  EXPECT_THAT(IdsOf(approximate), ElementsAre("near", "long"));
  query.approximation = {};
  query.score_kind = ScoreKind::kDot;
  ASSERT_OK_AND_ASSIGN(const RankAnswer dots, Rank(query));
  EXPECT_THAT(IdsOf(dots), ElementsAre("long", "near"));
}

TEST_F(RankItemsTest, InterestsOfAllCandidatesAreLimited) {
  std::vector<Item> items;
  std::vector<ItemId> ids;
  for (int i = 0; i < 513; ++i) {
    ids.push_back("item" + std::to_string(i));
    items.push_back(MakeItem(ids.back(), {1, static_cast<float>(i)}));
  }
  Upsert(items);
  MultiHeadProjections heads;
  heads.query = heads.key = {{1, 2, {1, 1}}, {}};
  heads.value = heads.query;
  heads.output = {{{65536, 1, std::vector<float>(65536, 1.0f)}, {}}};
  const AttentionModel model = {heads};
  RankQuery query = Query({}, {"lens"});
  query.candidates = ids;
  query.model = &model;
  query.result_count = 1;
  // 513 x 65,536 floats exceed the limit by 256 KiB.
  EXPECT_THAT(Rank(query), StatusIs(absl::StatusCode::kResourceExhausted,
                                    HasSubstr("candidates: got 513")));
  ids.resize(3);
  query.candidates = ids;
  EXPECT_OK(Rank(query));
}

TEST_F(RankItemsTest, RefusalsNameTheField) {
  const auto field = [&](const std::function<void(RankQuery&)>& change) {
    RankQuery query = Query({"camera"}, {"lens"});
    change(query);
    return FieldOf(Rank(query).status());
  };
  EXPECT_EQ(field([](RankQuery& q) { q.history.clear(); }), "history");
  EXPECT_EQ(field([](RankQuery& q) { q.key_field = "none"; }), "key_field");
  EXPECT_EQ(field([](RankQuery& q) { q.result_count = 0; }), "result_count");
  EXPECT_EQ(field([](RankQuery& q) { q.attribution_count = 101; }),
            "attribution_count");
  EXPECT_EQ(field([](RankQuery& q) { q.temperature = -1; }), "temperature");
  EXPECT_EQ(field([](RankQuery& q) {
              q.candidates = std::vector<ItemId>{"camera", "lens", "camera"};
            }),
            "candidates.items.ids[2]");
  EXPECT_EQ(field([](RankQuery& q) { q.candidates = std::vector<ItemId>{}; }),
            "candidates.items.ids");
  EXPECT_EQ(field([](RankQuery& q) {
              q.candidates = CandidateQuery{{1}, 3};
            }),
            "candidates.query.vector");
  EXPECT_EQ(field([](RankQuery& q) {
              q.candidates = CandidateQuery{{1, 2}, 0};
            }),
            "candidates.query.candidate_count");
  EXPECT_EQ(field([](RankQuery& q) {
              q.candidates = CandidateQuery{{1, 2}, 3, {"camera", ""}};
            }),
            "candidates.query.deny_list.ids[1]");
  // The lens is one item too many.
  const CandidateQuery full = {
      {1, 2}, 3, std::vector<ItemId>(kMaxIdListCount, "x")};
  EXPECT_EQ(field([&](RankQuery& q) { q.candidates = full; }),
            "candidates.query.deny_list.ids");
  EXPECT_EQ(
      field([](RankQuery& q) {
        q.candidates = CandidateQuery{{1, 2}, 3, {}, Filter::Exists("none")};
      }),
      "candidates.query.filter_expression.exists");
  // The error names the events, not the deny list that they extend.
  EXPECT_EQ(field([](RankQuery& q) {
              q.candidates = CandidateQuery{{1, 2}, 3};
              q.history[0].what = ItemId();
            }),
            "history[0].item_id");
  EXPECT_EQ(field([](RankQuery& q) {
              q.history[0].what = std::vector<float>{1, 2, 3};
            }),
            "history[0].vector");
  EXPECT_EQ(field([](RankQuery& q) {
              q.history[0].what = std::vector<float>{0, 0};
              q.score_kind = ScoreKind::kCosine;
            }),
            "history[0].vector");
  EXPECT_EQ(
      field([](RankQuery& q) {
        q.profile.push_back(
            {std::vector<float>{1, std::numeric_limits<float>::infinity()},
             {}});
      }),
      "profile[0].vector[1]");
  EXPECT_EQ(field([](RankQuery& q) { q.history[0].what = ItemId(); }),
            "history[0].item_id");
  EXPECT_THAT(
      Rank(Query({"nothing"}, {"lens"})),
      StatusIs(absl::StatusCode::kNotFound,
               HasSubstr("candidates.items.ids[0]: no item 'nothing'")));
  const AttentionModel bilinear = {BilinearForm{{2, 2, {1, 0, 0, 1}}}};
  EXPECT_EQ(field([&](RankQuery& q) { q.model = &bilinear; }), "model");
  RankQuery many = Query({"camera"}, {});
  many.history.assign(kMaxSequenceCount, {ItemId("lens"), At(1)});
  ASSERT_OK(Rank(many));
  many.profile.push_back({ItemId("lens"), {}});
  EXPECT_EQ(Rank(many).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace attendant
