#include "core/catalog/segments/matching.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/core/catalog/catalog_fixture.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Items 00 to 39 with their numbers as prices; written in no order, and those
// that three divides without a price.
class MatchingTest : public CatalogFixture {
 protected:
  void SetUp() override {
    CatalogSchema schema = OneFieldSchema(2);
    schema.attributes = {{"price", AttributeType::kInt64}};
    OpenCatalog(schema);
    std::vector<Item> items;
    for (int i = 0; i < 40; ++i) items.push_back(Numbered(i * 27 % 40));
    Upsert(items);
    Delete({"11"});
  }

  static Item Numbered(int number) {
    Item item = MakeItem(absl::StrFormat("%02d", number), {1, 2});
    if (number % 3 != 0) item.attributes = {{0, std::int64_t{number}}};
    return item;
  }

  static Filter Below(std::int64_t price) {
    return Filter::Compare("price", ComparisonKind::kLess,
                           AttributeValue(price));
  }

  MatchingPage Find(const Filter& filter, absl::string_view after,
                    std::size_t most) const {
    const auto page = FindMatchingPage(*catalog_->snapshot(), filter, after,
                                       most, Interrupt());
    EXPECT_OK(page);
    return page.ok() ? *page : MatchingPage();
  }
};

TEST_F(MatchingTest, PagesAreInOrderAndCountAll) {
  // 1 2 4 5 7 8 10 13 14 16 17 19
  MatchingPage page = Find(Below(20), "", 5);
  EXPECT_THAT(page.ids, ElementsAre("01", "02", "04", "05", "07"));
  EXPECT_EQ(page.total_count, 12);
  page = Find(Below(20), page.ids.back(), 5);
  EXPECT_THAT(page.ids, ElementsAre("08", "10", "13", "14", "16"));
  EXPECT_EQ(page.total_count, 12);
  page = Find(Below(20), page.ids.back(), 5);
  EXPECT_THAT(page.ids, ElementsAre("17", "19"));
  EXPECT_THAT(Find(Below(20), "19", 5).ids, IsEmpty());
  EXPECT_THAT(Find(Below(20), "0", 1).ids, ElementsAre("01"));
}

TEST_F(MatchingTest, EverySegmentIsSearched) {
  LiveCatalogOptions options;
  options.settle_time = absl::Hours(1);  // no merges
  disk_ = std::make_shared<FakeDisk>();
  OpenCatalog(schema_, options);
  Upsert({Numbered(4), Numbered(1)});
  std::vector<Item> others;
  for (int i = 100; i < 2000; ++i) {
    others.push_back(MakeItem(std::to_string(i), {1, 2}));
  }
  Upsert(others);
  Upsert({Numbered(2), Numbered(5)});
  ASSERT_GT(catalog_->snapshot()->segments.size(), 1u);
  const MatchingPage page = Find(Below(20), "", 3);
  EXPECT_THAT(page.ids, ElementsAre("01", "02", "04"));
  EXPECT_EQ(page.total_count, 4);
}

TEST_F(MatchingTest, ASearchEndsWithItsInterrupt) {
  const std::atomic<bool> cancelled = true;
  Interrupt interrupt;
  interrupt.cancelled = &cancelled;
  const auto ends = StatusIs(absl::StatusCode::kCancelled, testing::_);
  EXPECT_THAT(
      FindMatchingPage(*catalog_->snapshot(), Below(20), "", 1, interrupt),
      ends);
  EXPECT_THAT(Matches(Below(20), schema_, Numbered(1), interrupt), ends);
  const auto snapshot = catalog_->snapshot();
  Masks masks(*snapshot);
  ASSERT_OK(masks.Keep(Below(20), Interrupt()));
  const auto fail = [](absl::string_view id) { ADD_FAILURE() << id; };
  EXPECT_THAT(ForEachAllowed(masks, *snapshot, fail, interrupt), ends);
}

TEST_F(MatchingTest, AnItemMatchesAsItsRowDoes) {
  for (int i = 0; i < 40; ++i) {
    ASSERT_OK_AND_ASSIGN(const bool matches,
                         Matches(Below(20), schema_, Numbered(i), Interrupt()));
    EXPECT_EQ(matches, i % 3 != 0 && i < 20) << i;
  }
}

TEST_F(MatchingTest, ErrorsAreThoseOfTheFilter) {
  EXPECT_THAT(FindMatchingPage(*catalog_->snapshot(),
                               Filter::Compare("size", ComparisonKind::kLess,
                                               AttributeValue(std::int64_t{1})),
                               "", 1, Interrupt()),
              StatusIs(kInvalid, HasSubstr("size")));
}

}  // namespace
}  // namespace attendant
