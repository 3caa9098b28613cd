#include "core/catalog/live/live_catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/clock.h"
#include "tests/core/catalog/live/live_catalog_fixture.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(LiveCatalogTest, UpsertCountsInsertsAndUpdates) {
  OpenCatalog(OneFieldSchema(1));
  ASSERT_OK_AND_ASSIGN(
      const WriteOutcome first,
      catalog_->Upsert(std::vector{MakeItem("a", {1}), MakeItem("b", {2})},
                       ""));
  EXPECT_EQ(first.inserted_count, 2);
  EXPECT_EQ(first.sequence, 1);
  ASSERT_OK_AND_ASSIGN(
      const WriteOutcome second,
      catalog_->Upsert(std::vector{MakeItem("b", {3}), MakeItem("c", {4})},
                       ""));
  EXPECT_EQ(second.inserted_count, 1);
  EXPECT_EQ(second.updated_count, 1);
  EXPECT_EQ(second.sequence, 2);
  EXPECT_EQ(LiveIds(), (std::multiset<std::string>{"a", "b", "c"}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Item> items,
                       ItemsIn(*catalog_, {"b"}));
  EXPECT_THAT(items[0].keys[0], ElementsAre(3));
}

TEST_F(LiveCatalogTest, ASnapshotDoesNotChange) {
  OpenCatalog(OneFieldSchema(1));
  Upsert({MakeItem("a", {1}), MakeItem("b", {2})});
  const auto before = catalog_->snapshot();
  Upsert({MakeItem("a", {9})});
  Delete({"b"});
  EXPECT_EQ(before->item_count(), 2);
  EXPECT_THAT(ItemAt(*before, *before->Find("a")).keys[0], ElementsAre(1));
  EXPECT_TRUE(before->Find("b").has_value());
  EXPECT_EQ(catalog_->snapshot()->item_count(), 1);
  EXPECT_FALSE(catalog_->snapshot()->Find("b").has_value());
}

TEST_F(LiveCatalogTest, UpsertIsAllOrNothing) {
  OpenCatalog(OneFieldSchema(1));
  EXPECT_THAT(catalog_->Upsert(
                  std::vector{MakeItem("a", {1}), MakeItem("b", {1, 2})}, ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("items[1].keys[vec]")));
  EXPECT_THAT(
      catalog_->Upsert(std::vector{MakeItem("a", {1}), MakeItem("a", {2})}, ""),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("items[1].id")));
  EXPECT_THAT(catalog_->Upsert(std::vector<Item>{}, ""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("items")));
  EXPECT_EQ(catalog_->snapshot()->item_count(), 0);
  EXPECT_EQ(catalog_->snapshot()->sequence, 0);
}

TEST_F(LiveCatalogTest, AFailedWriteIsNotApplied) {
  OpenCatalog(OneFieldSchema(1));
  Upsert({MakeItem("a", {1})});
  {
    MutexLock lock(&disk_->mutex);
    disk_->write_status = absl::ResourceExhaustedError("disk full");
  }
  EXPECT_THAT(
      catalog_->Upsert(std::vector{MakeItem("b", {1})}, ""),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk full")));
  EXPECT_THAT(
      catalog_->Import(std::vector{MakeItem("b", {1})}),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk full")));
  EXPECT_EQ(LiveIds(), (std::multiset<std::string>{"a"}));
  {
    MutexLock lock(&disk_->mutex);
    disk_->write_status = absl::OkStatus();
  }
  Upsert({MakeItem("b", {1})});
  EXPECT_EQ(LiveIds(), (std::multiset<std::string>{"a", "b"}));
}

TEST_F(LiveCatalogTest, AWriteWithoutMemoryIsNotAppliedAndTheNextOneIs) {
  OpenCatalog(OneFieldSchema(1));
  Upsert({MakeItem("a", {1})});
  {
    MutexLock lock(&disk_->mutex);
    disk_->out_of_memory = true;
  }
  EXPECT_THAT(
      catalog_->Upsert(std::vector{MakeItem("a", {9}), MakeItem("b", {9})}, ""),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("memory")));
  {
    MutexLock lock(&disk_->mutex);
    disk_->out_of_memory = false;
  }
  Upsert({MakeItem("c", {3})});
  EXPECT_EQ(LiveIds(), (std::multiset<std::string>{"a", "c"}));
  EXPECT_EQ(catalog_->snapshot()->sequence, 2);
  ASSERT_OK_AND_ASSIGN(const std::vector<Item> items,
                       ItemsIn(*catalog_, {"a", "c"}));
  EXPECT_THAT(items[0].keys[0], ElementsAre(1));
  EXPECT_THAT(items[1].keys[0], ElementsAre(3));
}

TEST_F(LiveCatalogTest, ARepeatedRequestReturnsTheFirstOutcome) {
  OpenCatalog(OneFieldSchema(1));
  const std::vector<Item> items = {MakeItem("a", {1})};
  ASSERT_OK_AND_ASSIGN(const WriteOutcome first, catalog_->Upsert(items, "r1"));
  Upsert({MakeItem("a", {2})});
  ASSERT_OK_AND_ASSIGN(const WriteOutcome repeat,
                       catalog_->Upsert(items, "r1"));
  EXPECT_EQ(repeat, first);
  // The repeat is not applied again: the later write stands.
  ASSERT_OK_AND_ASSIGN(const std::vector<Item> now, ItemsIn(*catalog_, {"a"}));
  EXPECT_THAT(now[0].keys[0], ElementsAre(2));
  Restart();
  ASSERT_OK_AND_ASSIGN(const WriteOutcome later, catalog_->Upsert(items, "r1"));
  EXPECT_EQ(later, first);
  EXPECT_THAT(
      catalog_->Upsert(std::vector{MakeItem("a", {3})}, "r1"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("request_id")));
  EXPECT_THAT(
      catalog_->Delete(std::vector<std::string>{"a"}, "r1"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("request_id")));
}

TEST_F(LiveCatalogTest, DeleteCountsWhatWasThere) {
  OpenCatalog(OneFieldSchema(1));
  Upsert({MakeItem("a", {1}), MakeItem("b", {2})});
  ASSERT_OK_AND_ASSIGN(
      const WriteOutcome outcome,
      catalog_->Delete(std::vector<std::string>{"a", "x"}, ""));
  EXPECT_EQ(outcome.deleted_count, 1);
  EXPECT_EQ(outcome.missing_count, 1);
  EXPECT_EQ(LiveIds(), (std::multiset<std::string>{"b"}));
  Restart();
  EXPECT_EQ(LiveIds(), (std::multiset<std::string>{"b"}));
}

TEST_F(LiveCatalogTest, ImportTakesWhatIsValidAndTheLastOfAnId) {
  OpenCatalog(OneFieldSchema(1));
  ASSERT_OK_AND_ASSIGN(
      const ImportOutcome outcome,
      catalog_->Import(std::vector{MakeItem("a", {1}), MakeItem("", {1}),
                                   MakeItem("b", {}), MakeItem("a", {5})}));
  EXPECT_THAT(outcome.statuses[0], IsOk());
  EXPECT_THAT(outcome.statuses[1],
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("id")));
  EXPECT_THAT(outcome.statuses[2],
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("key")));
  EXPECT_THAT(outcome.statuses[3], IsOk());
  EXPECT_EQ(outcome.sequence, 1);
  EXPECT_EQ(LiveIds(), (std::multiset<std::string>{"a"}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Item> items,
                       ItemsIn(*catalog_, {"a"}));
  EXPECT_THAT(items[0].keys[0], ElementsAre(5));
}

TEST_F(LiveCatalogTest, TheFirstMissingItemIsNamed) {
  OpenCatalog(OneFieldSchema(1));
  Upsert({MakeItem("a", {1})});
  EXPECT_THAT(
      catalog_->VisitStored(std::vector<std::string>{"a", "x", "y"},
                            [](const StoredItem&) { return absl::OkStatus(); }),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("ids[1]")));
}

TEST_F(LiveCatalogTest, ListPagesInTheOrderOfIds) {
  OpenCatalog(OneFieldSchema(1));
  Upsert({MakeItem("c", {1}), MakeItem("a", {1}), MakeItem("b", {1})});
  ASSERT_OK_AND_ASSIGN(const std::vector<StoredItem> first,
                       StoredItems(*catalog_, "", 2));
  ASSERT_EQ(first.size(), 2);
  EXPECT_EQ(first[1].id, "b");
  ASSERT_OK_AND_ASSIGN(const std::vector<StoredItem> rest,
                       StoredItems(*catalog_, "b", 2));
  ASSERT_EQ(rest.size(), 1);
  EXPECT_EQ(rest[0].id, "c");
}

TEST_F(LiveCatalogTest, GrowsOverManySegments) {
  OpenCatalog(OneFieldSchema(2));
  const std::vector<Item> items = RandomItems(5000, 2, 1);
  for (int i = 0; i < 5000; i += 100) {
    Upsert({items.begin() + i, items.begin() + i + 100});
  }
  EXPECT_GT(catalog_->snapshot()->segments.size(), 1);
  EXPECT_EQ(LiveIds().size(), 5000);
  for (const int i : {0, 1023, 1024, 4999}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Item> found,
                         ItemsIn(*catalog_, {items[i].id}));
    EXPECT_EQ(found[0], items[i]);
  }
  Restart();
  EXPECT_EQ(LiveIds().size(), 5000);
  EXPECT_EQ(catalog_->snapshot()->sequence, 50);
}

TEST_F(LiveCatalogTest, CloseKeepsSnapshotsAndRefusesWrites) {
  OpenCatalog(OneFieldSchema(1));
  Upsert({MakeItem("a", {1})});
  catalog_->Close();
  EXPECT_THAT(catalog_->Upsert(std::vector{MakeItem("b", {1})}, ""),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("deleted")));
  EXPECT_THAT(StoredItems(*catalog_, "", 1),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("deleted")));
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(VectorQuery({1})));
  EXPECT_THAT(IdsOf(answer), ElementsAre("a"));
  EXPECT_EQ(catalog_->store_figures().memory_bytes(), 0);
}

TEST_F(LiveCatalogTest, ASnapshotKnowsSinceWhenItIsSeen) {
  OpenCatalog(OneFieldSchema(1));
  const SteadyTime opened = catalog_->snapshot()->publish_time;
  EXPECT_GT(opened, SteadyTime());
  const SteadyTime before = SteadyNow();
  Upsert({MakeItem("a", {1})});
  EXPECT_GE(catalog_->snapshot()->publish_time, before);
  EXPECT_LE(catalog_->snapshot()->publish_time, SteadyNow());
}

TEST_F(LiveCatalogTest, MemoryGrowsWithTheKeys) {
  OpenCatalog(OneFieldSchema(128));
  const std::int64_t empty = catalog_->memory_bytes();
  Upsert(RandomItems(1000, 128, 1));
  EXPECT_GE(catalog_->memory_bytes() - empty, 1000 * 128 * 4);
}

}  // namespace
}  // namespace attendant
