// Merges of segments: what they keep, what they drop, and how they fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/core/catalog/dead_keys.h"
#include "tests/core/catalog/failing_allocation.h"
#include "tests/core/catalog/live/live_catalog_fixture.h"
#include "tests/support/sanitized.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

TEST_F(LiveCatalogMergeTest, OpaqueValuesSurviveMergesAndRestarts) {
  OpenIvf();
  std::vector<Item> items = RandomItems(2000, 4, 6);
  for (std::size_t i = 0; i < items.size(); i += 2) {
    items[i].opaque_value = std::string("\0\xff", 2) + std::to_string(i);
  }
  Upsert(items);
  items[10].opaque_value = "another";
  items[11].opaque_value = "a first one";
  items[12].opaque_value.clear();
  Upsert({items[10], items[11], items[12]});
  const auto expect_all = [&](const char* when) {
    for (const Item& item : items) {
      ASSERT_OK_AND_ASSIGN(const std::vector<Item> found,
                           ItemsIn(*catalog_, {item.id}));
      EXPECT_EQ(found[0], item) << when;
    }
  };
  expect_all("as written");
  catalog_->AwaitIndexes();
  ASSERT_EQ(catalog_->snapshot()->segments.size(), 1);
  expect_all("merged");
  Restart();
  expect_all("restarted");
}

TEST_F(LiveCatalogMergeTest, KeepsDeletesAndUpdatesOfMergedRows) {
  OpenIvf();
  Upsert(RandomItems(2000, 4, 5));
  catalog_->AwaitIndexes();
  Delete({"item7"});
  Upsert({MakeItem("item8", {9, 9, 9, 9})});
  EXPECT_EQ(LiveIds().size(), 1999);
  EXPECT_EQ(LiveIds().count("item8"), 1);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer,
                       Ask(VectorQuery({1, 1, 1, 1})));
  EXPECT_EQ(IdsOf(answer).front(), "item8");
  Upsert(RandomItems(2000, 4, 6));
  catalog_->AwaitIndexes();
  EXPECT_EQ(catalog_->snapshot()->segments.size(), 1);
  EXPECT_EQ(LiveIds().size(), 2000);
}

TEST_F(LiveCatalogMergeTest, DeadKeysAreThoseOfDeadRows) {
  OpenIvf();
  Upsert(RandomItems(2000, 4, 5));
  catalog_->AwaitIndexes();
  EXPECT_EQ(CountDeadKeys(*catalog_->snapshot()), 0);
  Delete({"item7", "item100", "no item"});
  const auto one_write = catalog_->snapshot();
  EXPECT_EQ(CountDeadKeys(*one_write), 2);
  Upsert({MakeItem("item8", {9, 9, 9, 9})});
  // The row that replaces it is in no list yet.
  Delete({"item8"});
  EXPECT_EQ(CountDeadKeys(*one_write), 2);
  EXPECT_EQ(CountDeadKeys(*catalog_->snapshot()), 3);
}

TEST_F(LiveCatalogMergeTest, WritesDuringAMergeSurviveIt) {
  OpenIvf();
  Upsert(RandomItems(3000, 4, 5));
  std::thread waiter([&] { catalog_->AwaitIndexes(); });
  std::multiset<std::string> expected = LiveIds();
  for (int i = 0; i < 300; ++i) {
    const std::string id = "item" + std::to_string(i);
    if (i % 2 == 0) {
      Delete({id});
      expected.erase(id);
    } else {
      Upsert({MakeItem(id, {static_cast<float>(i), 0, 0, 0})});
    }
  }
  waiter.join();
  CountDeadKeys(*catalog_->snapshot());
  catalog_->AwaitIndexes();
  EXPECT_EQ(LiveIds(), expected);
  for (int i = 1; i < 300; i += 2) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Item> items,
                         ItemsIn(*catalog_, {"item" + std::to_string(i)}));
    EXPECT_EQ(items[0].keys[0][0], i);
  }
}

TEST_F(LiveCatalogMergeTest, DropsDeadRowsOnceTheyAreTheMost) {
  LiveCatalogOptions options;
  options.settle_time = absl::ZeroDuration();
  OpenCatalog(OneFieldSchema(4), options);
  Upsert(RandomItems(3000, 4, 5));
  std::vector<std::string> ids;
  for (int i = 0; i < 2000; ++i) ids.push_back("item" + std::to_string(i));
  Delete(ids);
  catalog_->AwaitIndexes();
  std::int64_t row_count = 0;
  const auto snapshot = catalog_->snapshot();
  for (const SegmentView& view : snapshot->segments) {
    row_count += view.row_end;
  }
  EXPECT_EQ(row_count, 1000);
  EXPECT_EQ(LiveIds().size(), 1000);
}

// The dead rows are few, but hold most of the memory.
TEST_F(LiveCatalogMergeTest, FewDeadRowsOfMuchMemoryAreDropped) {
  CatalogSchema schema = OneFieldSchema(4);
  schema.attributes = {{"text", AttributeType::kString}};
  OpenCatalog(schema);
  const auto text_of = [](std::size_t i, std::size_t byte_count) {
    std::string text = std::to_string(i);
    text.resize(byte_count, '.');
    return text;
  };
  constexpr std::int64_t kFewBytes = 4 << 20;
  std::vector<Item> items = RandomItems(200, 4, 5);
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].attributes = {{0, text_of(i, 512 << 10)}};
    ids.push_back(items[i].id);
  }
  Upsert(items);
  EXPECT_GT(catalog_->memory_bytes(), 100 << 20);
  Delete(ids);
  catalog_->AwaitIndexes();
  EXPECT_LT(catalog_->memory_bytes(), kFewBytes);
  // Replacing one item again and again leaves no more memory behind.
  for (std::size_t i = 0; i < 1000; ++i) {
    items[0].attributes = {{0, text_of(i, 64 << 10)}};
    Upsert({items[0]});
  }
  catalog_->AwaitIndexes();
  EXPECT_LT(catalog_->memory_bytes(), 2 * kFewBytes);
  ASSERT_OK_AND_ASSIGN(const auto found, ItemsIn(*catalog_, {items[0].id}));
  EXPECT_EQ(found[0], items[0]);
}

// Memory holds all keys meanwhile, and every answer is exact.
TEST_F(LiveCatalogMergeTest, AFullDiskKeepsTheCatalogAnswering) {
  CatalogSchema schema = OneFieldSchema(4);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  schema.key_fields[0].keys_on_disk = true;
  LiveCatalogOptions options;
  options.settle_time = absl::Hours(1);
  OpenCatalog(schema, options);
  const absl::Status full = absl::ResourceExhaustedError("the disk is full");
  disk_->scratch_files.FailToCreate(full);
  Upsert(RandomItems(2000, 4, 5));
  const auto expect_exact = [&] {
    EXPECT_THAT(catalog_->merge_status(),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("the disk is full")));
    EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kFlat);
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer,
                         Ask(VectorQuery({1, 0, 0, 0})));
    EXPECT_TRUE(answer.complete);
  };
  catalog_->AwaitIndexes();
  expect_exact();
  // The same holds for a disk that fills up during the build.
  disk_->scratch_files.FailToCreate(absl::OkStatus());
  disk_->scratch_files.FailAfter(100, full);
  Upsert({MakeItem("another", {1, 2, 3, 4})});
  catalog_->AwaitIndexes();
  expect_exact();
  // The failed merge leaves no segment behind.
  EXPECT_EQ(catalog_->snapshot()->segments.size(), 2u);
  // The next write tries the merge again.
  disk_->scratch_files.FailAfter(0, absl::OkStatus());
  Upsert({MakeItem("one more", {1, 2, 3, 4})});
  catalog_->AwaitIndexes();
  EXPECT_OK(catalog_->merge_status());
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
  EXPECT_EQ(catalog_->index_states()[0].disk_bytes, 2002 * 4 * 4);
}

TEST_F(LiveCatalogMergeTest, WhatFailedIsTriedAgainWithoutAWrite) {
  CatalogSchema schema = OneFieldSchema(4);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  schema.key_fields[0].keys_on_disk = true;
  LiveCatalogOptions options;
  options.settle_time = absl::ZeroDuration();
  options.retry_time = absl::Milliseconds(1);
  OpenCatalog(schema, options);
  disk_->scratch_files.FailToCreate(
      absl::ResourceExhaustedError("the disk is full"));
  Upsert(RandomItems(2000, 4, 5));
  catalog_->AwaitIndexes();
  EXPECT_FALSE(catalog_->merge_status().ok());
  disk_->scratch_files.FailToCreate(absl::OkStatus());
  for (int i = 0; i < 5000 && !catalog_->merge_status().ok(); ++i) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_OK(catalog_->merge_status());
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
}

// Work that waits for writes to settle starts early while a caller awaits it.
TEST_F(LiveCatalogMergeTest, WithoutMemoryNobodyWaitsForIndexesForEver) {
  CatalogSchema schema = OneFieldSchema(4);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  schema.key_fields[0].keys_on_disk = true;
  LiveCatalogOptions options;
  options.settle_time = absl::Hours(1);
  OpenCatalog(schema, options);
  disk_->scratch_files.FailToCreate(
      absl::ResourceExhaustedError("the disk is full"));
  Upsert(RandomItems(2000, 4, 5));
  catalog_->AwaitIndexes();
  EXPECT_FALSE(catalog_->merge_status().ok());
  disk_->scratch_files.FailToCreate(absl::OkStatus());
  if (!WithoutMemoryAt(1, [&] { catalog_->AwaitIndexes(); })) {
    EXPECT_TRUE(kSanitized);
    return;
  }
  Upsert({MakeItem("another", {1, 2, 3, 4})});
  // This task would run after the merge if the merge were due.
  std::promise<void> behind;
  background_.Add(
      this, absl::ZeroDuration(), [&] { behind.set_value(); }, Lane::kFirst);
  behind.get_future().wait();
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kFlat);
  catalog_->AwaitIndexes();
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
}

// Each failed write leaves rows that no snapshot shows, and thereby a segment.
TEST_F(LiveCatalogMergeTest, WritesThatFailLeaveFewSegments) {
  OpenCatalog(OneFieldSchema(4));
  const std::vector<Item> items = RandomItems(60, 4, 5);
  for (const Item& item : items) {
    {
      MutexLock lock(&disk_->mutex);
      disk_->write_status = absl::ResourceExhaustedError("the disk is full");
    }
    EXPECT_FALSE(catalog_->Upsert(std::vector{item}, "").ok());
    {
      MutexLock lock(&disk_->mutex);
      disk_->write_status = absl::OkStatus();
    }
    Upsert({item});
  }
  catalog_->AwaitIndexes();
  EXPECT_LE(catalog_->snapshot()->segments.size(), 24u);
  EXPECT_EQ(catalog_->snapshot()->item_count(), 60);
  for (const Item& item : items) {
    ASSERT_OK_AND_ASSIGN(const auto found, ItemsIn(*catalog_, {item.id}));
    EXPECT_EQ(found[0], item);
  }
}

}  // namespace
}  // namespace attendant
