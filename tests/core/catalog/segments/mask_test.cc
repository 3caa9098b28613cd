#include "core/catalog/segments/mask.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/core/catalog/catalog_fixture.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using enum ComparisonKind;

Filter Stock(ComparisonKind kind, std::int64_t value) {
  return Filter::Compare("stock", kind, value);
}

class MaskTest : public CatalogFixture {
 protected:
  // Items 0 to 9 have key (i, 1) and stock i; every third also has a key in the
  // second field. Item 3 is deleted and 4 rewritten (into a later row).
  void SetUp() override {
    CatalogSchema schema = OneFieldSchema(2);
    schema.key_fields.push_back(schema.key_fields[0]);
    schema.key_fields[1].name = "other";
    schema.attributes = {{"stock", AttributeType::kInt64}};
    OpenCatalog(schema);
    std::vector<Item> items;
    for (int i = 0; i < 10; ++i) items.push_back(ItemOf(i));
    Upsert(items);
    Delete({"3"});
    Upsert({ItemOf(4)});
  }

  static Item ItemOf(int i) {
    Item item = MakeItem(std::to_string(i), {static_cast<float>(i), 1.0F});
    item.keys.push_back(i % 3 == 0 ? std::vector<float>{1, 1}
                                   : std::vector<float>());
    item.attributes = {{0, std::int64_t{i}}};
    return item;
  }

  // Returns the eligible ids in order, by the masks' bitmaps; checks the
  // counts.
  std::vector<std::string> EligibleIds(const Masks& masks) {
    const Snapshot& snapshot = *snapshot_;
    std::vector<std::string> ids;
    std::int64_t key_count = 0;
    std::int64_t other_count = 0;
    std::int64_t any_count = 0;
    for (std::size_t s = 0; s < snapshot.segments.size(); ++s) {
      const SegmentMask& mask = masks[s];
      EXPECT_TRUE(mask.allowed == nullptr || mask.excluded == nullptr);
      for (RowIndex row = 0; row < snapshot.segments[s].row_end; ++row) {
        if (mask.allowed != nullptr && !mask.allowed->Test(row)) continue;
        if (mask.excluded != nullptr && mask.excluded->Test(row)) continue;
        const RowAddress address = {static_cast<std::int32_t>(s), row};
        ids.emplace_back(snapshot.IdOf(address.segment, row));
        key_count += snapshot.KeyOf(address, 0).empty() ? 0 : 1;
        other_count += snapshot.KeyOf(address, 1).empty() ? 0 : 1;
        any_count += snapshot.KeyOf(address, 0).empty() &&
                             snapshot.KeyOf(address, 1).empty()
                         ? 0
                         : 1;
      }
    }
    EXPECT_EQ(masks.EligibleCount(0), key_count);
    for (std::size_t s = 0; s < snapshot.segments.size(); ++s) {
      const auto known = masks.KnownEligibleCount(s, 0);
      EXPECT_EQ(known.has_value(), masks[s].allowed == nullptr);
      if (known) {
        EXPECT_EQ(*known, masks.EligibleCount(s, 0));
      }
      // Not all items have a key in the second field.
      const auto known_other = masks.KnownEligibleCount(s, 1);
      EXPECT_EQ(known_other.has_value(),
                masks[s].allowed == nullptr && masks[s].own == nullptr);
      if (known_other) {
        EXPECT_EQ(*known_other, masks.EligibleCount(s, 1));
      }
    }
    EXPECT_EQ(masks.EligibleCount(1), other_count);
    EXPECT_EQ(masks.EligibleCount(std::vector<int>{1}), other_count);
    EXPECT_EQ(masks.EligibleCount(std::vector<int>{1, 0}), any_count);
    std::ranges::sort(ids);
    return ids;
  }

  Masks NewMasks() {
    snapshot_ = catalog_->snapshot();
    return Masks(*snapshot_);
  }

  std::shared_ptr<const Snapshot> snapshot_;
};

TEST_F(MaskTest, WithoutAMaskWhatIsLiveIsEligible) {
  EXPECT_THAT(EligibleIds(NewMasks()),
              ElementsAre("0", "1", "2", "4", "5", "6", "7", "8", "9"));
}

TEST_F(MaskTest, AnAllowListLetsItsItemsPass) {
  Masks masks = NewMasks();
  ASSERT_OK(masks.AllowOnly(std::vector<ItemId>{"9", "3", "4", "unknown", "9"},
                            "ids", {}));
  EXPECT_THAT(EligibleIds(masks), ElementsAre("4", "9"));
  masks = NewMasks();
  ASSERT_OK(masks.AllowOnly({}, "ids", {}));
  EXPECT_THAT(EligibleIds(masks), IsEmpty());
}

TEST_F(MaskTest, ADenyListLetsOthersPass) {
  Masks masks = NewMasks();
  ASSERT_OK(masks.Exclude(std::vector<ItemId>{"9", "3", "4", "unknown", "9"},
                          "ids", {}));
  EXPECT_THAT(EligibleIds(masks),
              ElementsAre("0", "1", "2", "5", "6", "7", "8"));
}

TEST_F(MaskTest, WhatIsNoIdIsRefusedByItsPlace) {
  for (const ItemId& bad : {ItemId(), ItemId("\xff"), ItemId(129, 'x')}) {
    Masks masks = NewMasks();
    EXPECT_FALSE(
        masks.Exclude(std::vector<ItemId>{"9", "unknown", bad}, "ids", {})
            .ok());
    EXPECT_THAT(
        masks.AllowOnly(std::vector<ItemId>{"9", "unknown", bad}, "ids", {})
            .message(),
        ::testing::HasSubstr("ids[2]"));
  }
}

TEST_F(MaskTest, AFilterLetsPassWhatItIsTrueOf) {
  Masks masks = NewMasks();
  ASSERT_OK(masks.Keep(Stock(kLess, 5), Interrupt()));
  EXPECT_THAT(EligibleIds(masks), ElementsAre("0", "1", "2", "4"));
  masks = NewMasks();
  ASSERT_OK(masks.Keep(Filter::Not(Stock(kLess, 5)), Interrupt()));
  EXPECT_THAT(EligibleIds(masks), ElementsAre("5", "6", "7", "8", "9"));
}

TEST_F(MaskTest, MasksActTogetherInAnyOrder) {
  const std::vector<ItemId> denied = {"0", "6"};
  Masks masks = NewMasks();
  ASSERT_OK(
      masks.AllowOnly(std::vector<ItemId>{"0", "3", "5", "6", "7"}, "ids", {}));
  ASSERT_OK(masks.Exclude(denied, "ids", {}));
  ASSERT_OK(masks.Keep(Stock(kLess, 7), Interrupt()));
  EXPECT_THAT(EligibleIds(masks), ElementsAre("5"));
  masks = NewMasks();
  ASSERT_OK(masks.Keep(Stock(kLess, 7), Interrupt()));
  ASSERT_OK(masks.Exclude(denied, "ids", {}));
  EXPECT_THAT(EligibleIds(masks), ElementsAre("1", "2", "4", "5"));
}

TEST_F(MaskTest, ABadFilterIsRefused) {
  Masks masks = NewMasks();
  EXPECT_THAT(masks.Keep(Filter::Exists("size"), Interrupt()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("filter_expression.exists")));
}

// A filtered answer, from any index and any number of segments, equals that of
// a catalog with only the passing items.
TEST(FilteredAttendTest, IsTheAnswerOfACatalogOfThePassingItems) {
  constexpr int kDim = 8;
  class Catalog : public CatalogFixture {
   public:
    explicit Catalog(const std::vector<Item>& items) {
      CatalogSchema schema = OneFieldSchema(kDim);
      schema.attributes = {{"stock", AttributeType::kInt64}};
      OpenCatalog(schema);
      for (std::size_t begin = 0; begin < items.size(); begin += 700) {
        Upsert({items.begin() + static_cast<std::ptrdiff_t>(begin),
                items.begin() + static_cast<std::ptrdiff_t>(
                                    std::min(begin + 700, items.size()))});
      }
    }
    void TestBody() override {}
    using CatalogFixture::Ask;
    using CatalogFixture::IdsOf;
  };
  std::vector<Item> items = RandomItems(3000, kDim, 5);
  std::vector<Item> passing;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto stock = static_cast<std::int64_t>(i * 7919 % 3000);
    items[i].attributes = {{0, stock}};
    if (stock < 300) passing.push_back(items[i]);
  }
  Catalog all(items);
  Catalog some(passing);
  AttendQuery query = VectorQuery(RandomItems(1, kDim, 6)[0].keys[0]);
  for (const WeightScope scope :
       {WeightScope::kShortlist, WeightScope::kCatalog}) {
    query.weight_scope = scope;
    query.filter.reset();
    ASSERT_OK_AND_ASSIGN(const AttendAnswer expected, some.Ask(query));
    query.filter = Stock(kLess, 300);
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, all.Ask(query));
    EXPECT_EQ(all.IdsOf(answer), some.IdsOf(expected));
    EXPECT_EQ(answer.eligible_count, 300);
    EXPECT_EQ(answer.scored_count, 300);
    // Sums of the same 300 terms in another order, with relative errors below
    // 2^-20 (see Kernels::SumExps).
    EXPECT_NEAR(*answer.log_partition, *expected.log_partition, 0x1p-20);
    for (std::size_t i = 0; i < answer.items.size(); ++i) {
      EXPECT_EQ(answer.items[i].logit, expected.items[i].logit);
      EXPECT_NEAR(answer.items[i].weight, expected.items[i].weight, 0x1p-20);
    }
  }
}

}  // namespace
}  // namespace attendant
