// Attention of several heads that are key fields, or one field queried twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "core/attention/sampling/sampling.h"
#include "core/catalog/query/answer.h"
#include "core/catalog/query/query_scan.h"
#include "core/catalog/query/scored_rows.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/support/look_counter.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;

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
    query.heads.push_back({"title", {}, {}, {}});
    query.heads.push_back({"text", {}, {}, {}});
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
    earned[IdsOf(answer)[i]] = answer.heads[answer.items[i].head].key_field;
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

// The mean over heads, by their weights, of everything that is a mean.
TEST_F(FieldHeadsTest, HeadsCountByTheirWeights) {
  AttendQuery query = Query();
  query.weight_scope = WeightScope::kCatalog;
  query.result_count = 4;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer even, Ask(query));
  EXPECT_EQ(even.heads[0].share, 0.5);
  query.heads[0].weight = 3;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_EQ(answer.heads[0].share, 0.75);
  EXPECT_EQ(answer.heads[1].share, 0.25);
  ASSERT_THAT(answer.items, SizeIs(4));
  double sum = 0;
  std::vector<double> pooled(2);
  for (const AttendedItem& item : answer.items) {
    EXPECT_NEAR(item.weight,
                0.75 * item.head_weights[0] + 0.25 * item.head_weights[1],
                1e-12);
    EXPECT_EQ(item.head,
              3 * item.head_weights[0] >= item.head_weights[1] ? 0 : 1);
    sum += item.weight;
  }
  EXPECT_NEAR(sum, 1, 4e-6);  // the rounding of a scan's exponentials
  for (std::size_t d = 0; d < 2; ++d) {
    EXPECT_NEAR(
        answer.pooled_value->values[d],
        0.75 * answer.heads[0].output[d] + 0.25 * answer.heads[1].output[d],
        1e-6);
  }
  query.result_count = 1;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer one, Ask(query));
  EXPECT_NEAR(one.returned_mass.value,
              0.75 * one.heads[0].returned_mass.value +
                  0.25 * one.heads[1].returned_mass.value,
              1e-12);
}

// Draws are from the mean, whether all logits are drawn from or the shortlist.
TEST_F(FieldHeadsTest, DrawsAreFromTheMeanByWeights) {
  AttendQuery query = Query();
  query.heads[1].weight = 1e-9;
  query.select_kind = SelectKind::kSample;
  query.result_count = 1;
  query.seed = 3;
  for (const WeightScope scope :
       {WeightScope::kCatalog, WeightScope::kShortlist}) {
    query.weight_scope = scope;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
    const AttendedItem& item = answer.items[0];
    EXPECT_NEAR(std::exp(*item.log_weight), item.head_weights[0], 1e-6);
    EXPECT_NEAR(std::exp(*item.log_weight), item.weight, 1e-6);
  }
}

TEST_F(FieldHeadsTest, OnlyRatiosOfHeadWeightsMatter) {
  AttendQuery query = Query();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer even, Ask(query));
  for (const double weight : {1e-300, 3.0, 1e300}) {
    for (QueryHead& head : query.heads) head.weight = weight;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
    ASSERT_EQ(IdsOf(answer), IdsOf(even));
    for (std::size_t i = 0; i < even.items.size(); ++i) {
      EXPECT_EQ(answer.items[i].weight, even.items[i].weight);
    }
  }
  // A ratio beyond doubles.
  query.heads[0].weight = 1e300;
  query.heads[1].weight = 1e-300;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer far, Ask(query));
  EXPECT_NEAR(far.items[0].weight, far.items[0].head_weights[0], 1e-12);
  for (const double weight :
       {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    query.heads[1].weight = weight;
    EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("heads[1].weight")));
  }
}

// The item has weight 1 in both heads.
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

// Under NONE a head's logit is its weight: -1.5 here, below that of the head
// without a key.
TEST_F(FieldHeadsTest, AHeadWithoutTheItemEarnsNothing) {
  AttendQuery query = Query();
  query.query = std::vector<float>{-3, 0};
  query.activation_kind = ActivationKind::kNone;
  std::swap(query.heads[0], query.heads[1]);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  const std::vector<std::string> ids = IdsOf(answer);
  const auto at = std::ranges::find(ids, "untitled");
  ASSERT_NE(at, ids.end());
  const AttendedItem& item = answer.items[at - ids.begin()];
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

// The mean of log weights exceeds floats where a head's log weights are near
// their limit.
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

// Each item is first in another head, so the weights sum the same numbers in
// different orders.
TEST_F(FieldHeadsTest, EqualWeightsAreInTheOrderOfIds) {
  CatalogSchema schema;
  AttendQuery query = VectorQuery({1});
  for (const char* const name : {"a", "b", "c"}) {
    schema.key_fields.push_back(OneFieldSchema(1).key_fields[0]);
    schema.key_fields.back().name = name;
    query.heads.push_back({name, {}, {}, {}});
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

// In addition to the looks of scans and samples.
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
      // Sorting the rows takes these looks.
      int least = scoring + 5;
      // So do the mean logits of the shortlist, and the noise.
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
  // The error names the field that holds the vector.
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
  // A request value that no head uses is an error, not ignored.
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
      {"title", QueryForm(std::vector<float>{1, 0, 0}), {}, {}});
  query.heads.push_back({"text", QueryForm(std::vector<float>{1, 0}), {}, {}});
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

}  // namespace
}  // namespace attendant
