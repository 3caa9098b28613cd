// Diversity: at most so many returned items with the same value of an
// attribute.
#include <map>

#include "tests/core/catalog/catalog_fixture.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class CrowdingTest : public CatalogFixture {
 protected:
  enum Attribute { kBrand, kShelf, kNew, kPrice, kTags, kAdded };

  void OpenShop() {
    CatalogSchema schema = OneFieldSchema(1);
    schema.attributes = {{"brand", AttributeType::kString},
                         {"shelf", AttributeType::kInt64},
                         {"new", AttributeType::kBool},
                         {"price", AttributeType::kDouble},
                         {"tags", AttributeType::kStringList},
                         {"added", AttributeType::kTimestamp}};
    OpenCatalog(schema);
  }

  // For the query {1}, an item's logit is `logit`.
  static Item Product(std::string id, float logit, std::string brand) {
    Item item = MakeItem(std::move(id), {logit});
    if (!brand.empty()) item.attributes = {{kBrand, std::move(brand)}};
    return item;
  }

  static AttendQuery Crowded(std::string attribute, std::int64_t max_count) {
    AttendQuery query = VectorQuery({1});
    query.crowding_limits = {{std::move(attribute), max_count}};
    return query;
  }
};

TEST_F(CrowdingTest, TheNextBestReplaceCrowdedItems) {
  OpenShop();
  Upsert({Product("a1", 6, "a"), Product("a2", 5, "a"), Product("a3", 4, "a"),
          Product("b1", 3, "b"), Product("none1", 2, ""), Product("c1", 1, "c"),
          Product("none2", 0, "")});
  AttendQuery query = Crowded("brand", 1);
  query.result_count = 4;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer one, Ask(query));
  EXPECT_THAT(IdsOf(one), ElementsAre("a1", "b1", "none1", "c1"));
  EXPECT_EQ(one.limit_reason, LimitReason::kNone);
  query.crowding_limits[0].max_count = 2;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer two, Ask(query));
  EXPECT_THAT(IdsOf(two), ElementsAre("a1", "a2", "b1", "none1"));
}

TEST_F(CrowdingTest, OnlyTheChoiceChanges) {
  OpenShop();
  Upsert({Product("a1", 2, "a"), Product("a2", 1.5, "a"), Product("b1", 1, "b"),
          Product("b2", 0.5, "b")});
  AttendQuery query = VectorQuery({1});
  query.weight_scope = WeightScope::kCatalog;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer all, Ask(query));
  query.crowding_limits = {{"brand", 1}};
  ASSERT_OK_AND_ASSIGN(const AttendAnswer some, Ask(query));
  ASSERT_THAT(all.items, SizeIs(4));
  ASSERT_THAT(some.items, SizeIs(2));
  EXPECT_EQ(some.items[0].weight, all.items[0].weight);
  EXPECT_EQ(some.items[1].weight, all.items[2].weight);
  EXPECT_NEAR(some.returned_mass.value,
              some.items[0].weight + some.items[1].weight, 1e-12);
  EXPECT_EQ(some.shortlist_mass.value, 1);
  EXPECT_EQ(some.log_partition, all.log_partition);
  EXPECT_EQ(some.pooled_value->values, all.pooled_value->values);
  // Items that are not returned are not pooled over what is.
  query.pool_scope = WeightScope::kReturned;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer pooled, Ask(query));
  const double share =
      some.items[0].weight / (some.items[0].weight + some.items[1].weight);
  EXPECT_NEAR(pooled.pooled_value->values[0], 2 * share + (1 - share), 1e-6);
}

TEST_F(CrowdingTest, WhatLimitsAnAnswerIsSaid) {
  OpenShop();
  Upsert({Product("a1", 3, "a"), Product("a2", 2, "a"), Product("a3", 1, "a"),
          Product("b1", 0, "b")});
  AttendQuery query = Crowded("brand", 1);
  query.result_count = 3;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer crowded, Ask(query));
  EXPECT_THAT(IdsOf(crowded), ElementsAre("a1", "b1"));
  EXPECT_EQ(crowded.limit_reason, LimitReason::kCrowding);
  // A shortlist without the other brand.
  query.shortlist_count = 3;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer shortlisted, Ask(query));
  EXPECT_THAT(IdsOf(shortlisted), ElementsAre("a1"));
  EXPECT_EQ(shortlisted.limit_reason, LimitReason::kCrowding);
  // All that is eligible.
  query.crowding_limits[0].max_count = 3;
  query.result_count = 10;
  query.shortlist_count = 10;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer all, Ask(query));
  EXPECT_THAT(all.items, SizeIs(4));
  EXPECT_EQ(all.limit_reason, LimitReason::kNone);
}

TEST_F(CrowdingTest, MinMassIsHeldByWhatIsLeft) {
  OpenShop();
  Upsert({Product("a1", 3, "a"), Product("a2", 2, "a"), Product("b1", 1, "b"),
          Product("c1", 0, "c")});
  ASSERT_OK_AND_ASSIGN(const AttendAnswer free, Ask(VectorQuery({1})));
  const double a1 = free.items[0].weight;
  const double b1 = free.items[2].weight;
  AttendQuery query = Crowded("brand", 1);
  query.min_mass = a1 + b1 / 2;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer held, Ask(query));
  EXPECT_THAT(IdsOf(held), ElementsAre("a1", "b1"));
  EXPECT_EQ(held.limit_reason, LimitReason::kNone);
  query.min_mass = 0.999;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer crowded, Ask(query));
  EXPECT_THAT(IdsOf(crowded), ElementsAre("a1", "b1", "c1"));
  EXPECT_EQ(crowded.limit_reason, LimitReason::kCrowding);
  query.result_count = 2;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer capped, Ask(query));
  EXPECT_THAT(IdsOf(capped), ElementsAre("a1", "b1"));
  EXPECT_EQ(capped.limit_reason, LimitReason::kResultCap);
}

TEST_F(CrowdingTest, NumbersAndTruthsCrowdToo) {
  OpenShop();
  std::vector<Item> items;
  for (int n = 0; n < 6; ++n) {
    Item item = MakeItem("item" + std::to_string(n), {6.0F - n});
    item.attributes = {{kShelf, std::int64_t{n / 3}}, {kNew, n % 2 == 0}};
    items.push_back(std::move(item));
  }
  Upsert(items);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer shelves, Ask(Crowded("shelf", 2)));
  EXPECT_THAT(IdsOf(shelves), ElementsAre("item0", "item1", "item3", "item4"));
  ASSERT_OK_AND_ASSIGN(const AttendAnswer truths, Ask(Crowded("new", 1)));
  EXPECT_THAT(IdsOf(truths), ElementsAre("item0", "item1"));
}

// Each text of a list counts once, however often the list has it.
TEST_F(CrowdingTest, ListsCrowdByEachOfTheirTexts) {
  OpenShop();
  const auto tagged = [](std::string id, float logit,
                         std::vector<std::string> tags) {
    Item item = MakeItem(std::move(id), {logit});
    item.attributes = {{kTags, std::move(tags)}};
    return item;
  };
  Upsert({tagged("first", 5, {"red", "red", "new"}),
          tagged("second", 4, {"red", "old"}), tagged("third", 3, {"red"}),
          tagged("fourth", 2, {"old", "new"}), tagged("none", 1, {}),
          tagged("fifth", 0, {"old"})});
  ASSERT_OK_AND_ASSIGN(const AttendAnswer two, Ask(Crowded("tags", 2)));
  EXPECT_THAT(IdsOf(two), ElementsAre("first", "second", "fourth", "none"));
  // What is passed over crowds nothing out: "fourth" has "old" and "new".
  ASSERT_OK_AND_ASSIGN(const AttendAnswer one, Ask(Crowded("tags", 1)));
  EXPECT_THAT(IdsOf(one), ElementsAre("first", "none", "fifth"));
}

TEST_F(CrowdingTest, EveryLimitCounts) {
  OpenShop();
  std::vector<Item> items;
  for (int n = 0; n < 8; ++n) {
    Item item = MakeItem("item" + std::to_string(n), {8.0F - n});
    item.attributes = {{kBrand, std::string(n < 4 ? "a" : "b")},
                       {kShelf, std::int64_t{n % 2}}};
    items.push_back(std::move(item));
  }
  Upsert(items);
  AttendQuery query = Crowded("brand", 2);
  query.crowding_limits.push_back({"shelf", 2});
  ASSERT_OK_AND_ASSIGN(const AttendAnswer both, Ask(query));
  EXPECT_THAT(IdsOf(both), ElementsAre("item0", "item1", "item4", "item5"));
  query.crowding_limits[1].max_count = 1;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer shelves, Ask(query));
  EXPECT_THAT(IdsOf(shelves), ElementsAre("item0", "item1"));
  query.crowding_limits.assign(kMaxCrowdingLimitCount + 1, {"brand", 1});
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kResourceExhausted,
                                   HasSubstr("crowding_limits")));
}

// Texts have other codes in each segment.
TEST_F(CrowdingTest, SegmentsAgreeWithPlainLoops) {
  constexpr int kDim = 8;
  CatalogSchema schema = OneFieldSchema(kDim);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  schema.attributes = {{"brand", AttributeType::kString}};
  LiveCatalogOptions options;
  options.settle_time = absl::Hours(1);  // no merges
  OpenCatalog(schema, options);
  std::map<std::string, std::string> brands;
  std::mt19937_64 random(5);
  const auto write = [&](int count, int seed) {
    std::vector<Item> items = RandomItems(count, kDim, seed);
    for (Item& item : items) {
      const std::string brand = "brand" + std::to_string(random() % 9);
      item.attributes = {{kBrand, brand}};
      brands[item.id] = brand;
    }
    Upsert(items);
  };
  write(6000, 1);
  catalog_->AwaitIndexes();
  // Replaces some items, in a segment of its own.
  write(300, 2);
  ASSERT_GT(catalog_->snapshot()->segments.size(), 1U);
  AttendQuery query = VectorQuery(std::vector<float>(kDim, 0.5F));
  query.scan_mode = ScanMode::kExact;
  query.result_count = 6000;
  query.shortlist_count = 6000;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer all, Ask(query));
  const std::vector<std::string> ranked = IdsOf(all);
  ASSERT_THAT(ranked, SizeIs(6000));
  for (const int max_count : {1, 2, 200}) {
    std::map<std::string, int> counts;
    std::vector<std::string> expected;
    for (const std::string& id : ranked) {
      if (++counts[brands[id]] <= max_count) expected.push_back(id);
    }
    query.crowding_limits = {{"brand", max_count}};
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
    EXPECT_EQ(IdsOf(answer), expected) << max_count;
  }
}

TEST_F(CrowdingTest, WhatDoesNotFitIsRefused) {
  OpenShop();
  Upsert({Product("a1", 3, "a")});
  const std::map<std::string, std::string> wants = {
      {"maker",
       "crowding_limits[0].attribute: got 'maker', want an attribute that the "
       "schema declares"},
      {"", "got '', want an attribute that the schema declares"},
      {"price", "got 'price', a double, want an attribute of type string"},
      {"added", "want an attribute of type string, string_list, int64"}};
  for (const auto& [attribute, want] : wants) {
    EXPECT_THAT(Ask(Crowded(attribute, 1)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(want)));
  }
  for (const std::int64_t count : {0, -1}) {
    EXPECT_THAT(Ask(Crowded("brand", count)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("crowding_limits[0].max_count")));
  }
  EXPECT_THAT(Ask(Crowded("brand", kMaxResultCount + 1)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("crowding_limits[0].max_count")));
  for (const SelectKind kind : {SelectKind::kHard, SelectKind::kSample}) {
    AttendQuery query = Crowded("brand", 1);
    query.select_kind = kind;
    EXPECT_THAT(Ask(query),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("crowding_limits: got 1, want nothing")));
  }
}

}  // namespace
}  // namespace attendant
