// A delete by filter deletes what matches at its turn in the queue, although it
// searches for most of it beforehand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/fail_point.h"
#include "core/catalog/live/live_catalog.h"
#include "core/catalog/segments/mask.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/support/scratch_directory.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// Uses a real store, whose log shows what was written in the meantime.
class DeleteMatchingTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(IndexKind::kFlat, {}); }
  void TearDown() override { ASSERT_OK(ArmFailPoint("")); }

  void Open(IndexKind kind, const LiveCatalogOptions& options) {
    record_.name = "shop";
    record_.uid = "0123456789abcdef";
    record_.schema = OneFieldSchema(1);
    record_.schema.key_fields[0].index_kind = kind;
    record_.schema.attributes = {{"price", AttributeType::kDouble}};
    ASSERT_OK_AND_ASSIGN(store_, Store::Open(directory_.path()));
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<CatalogStore> items,
                         store_->OpenCatalog(record_));
    items_ = items.get();
    ASSERT_OK_AND_ASSIGN(
        catalog_, LiveCatalog::Open(record_, std::vector<NamedModel>(1),
                                    std::move(items), &background_, options));
    ASSERT_OK(store_->Put(record_));
  }

  static Item Priced(const std::string& id, double price) {
    Item item = MakeItem(id, {1});
    item.attributes = {{0, price}};
    return item;
  }
  void Upsert(const std::vector<Item>& items) {
    ASSERT_OK(catalog_->Upsert(items, ""));
  }
  bool Has(const std::string& id) const {
    return catalog_->snapshot()->Find(id).has_value();
  }

  static Filter Cheap() {
    return Filter::Compare("price", ComparisonKind::kLess,
                           AttributeValue(10.0));
  }
  // Deletes items that cost less than 10; `meanwhile` runs between the search
  // and the delete's turn. The delete fails if it searches more than `most`
  // times.
  template <typename Meanwhile>
  absl::StatusOr<WriteOutcome> DeleteCheap(Meanwhile meanwhile, int most = 1) {
    EXPECT_OK(ArmFailPoint("delete_matching.before_turn=wait"));
    absl::StatusOr<WriteOutcome> outcome;
    std::thread deleting(
        [&] { outcome = catalog_->DeleteMatching(Cheap(), ""); });
    while (WaitingAtFailPoints() == 0) std::this_thread::yield();
    meanwhile();
    EXPECT_OK(ArmFailPoint(
        absl::StrCat("delete_matching.before_turn:", most, "=error")));
    deleting.join();
    return outcome;
  }

  const ScratchDirectory directory_;
  BackgroundWorker background_;
  CatalogRecord record_;
  std::unique_ptr<Store> store_;
  const CatalogStore* items_ = nullptr;  // of catalog_
  std::unique_ptr<LiveCatalog> catalog_;
};

TEST_F(DeleteMatchingTest, WhatWasWrittenMeanwhileIsLookedAtAgain) {
  Upsert({Priced("cheap", 1), Priced("now dear", 2), Priced("gone", 3),
          Priced("dear", 20), Priced("now cheap", 30)});
  ASSERT_OK_AND_ASSIGN(
      const WriteOutcome outcome, DeleteCheap([&] {
        Upsert({Priced("now dear", 40), Priced("now cheap", 4),
                Priced("new cheap", 5), Priced("new dear", 50)});
        ASSERT_OK(catalog_->Delete(std::vector<std::string>{"gone"}, ""));
      }));
  EXPECT_EQ(outcome.deleted_count, 3);
  for (const char* left : {"now dear", "dear", "new dear"}) {
    EXPECT_TRUE(Has(left)) << left;
  }
  EXPECT_EQ(catalog_->snapshot()->item_count(), 3);
}

TEST_F(DeleteMatchingTest, NothingWrittenMeanwhileChangesNothing) {
  Upsert({Priced("cheap", 1), Priced("dear", 20)});
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, DeleteCheap([] {}));
  EXPECT_EQ(outcome.deleted_count, 1);
  EXPECT_FALSE(Has("cheap"));
  EXPECT_TRUE(Has("dear"));
}

TEST_F(DeleteMatchingTest, ManyWritesMeanwhileAreAllLookedAt) {
  std::vector<Item> items;
  for (int i = 0; i < 3000; ++i) {
    items.push_back(Priced("i" + std::to_string(i), i % 2 == 0 ? 1 : 20));
  }
  Upsert(items);
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, DeleteCheap([&] {
                         for (Item& item : items) {
                           const double price =
                               std::get<double>(item.attributes[0].second);
                           item.attributes[0].second = 21 - price;
                         }
                         Upsert(items);
                       }));
  EXPECT_EQ(outcome.deleted_count, 1500);
  EXPECT_FALSE(Has("i1"));
  EXPECT_TRUE(Has("i0"));
}

class DeleteMatchingReviewTest : public DeleteMatchingTest {
 protected:
  void SetUp() override {
    LiveCatalogOptions options;
    options.max_reviewed_changes = 2;
    Open(IndexKind::kFlat, options);
    Upsert({Priced("cheap", 1), Priced("now dear", 2), Priced("dear", 20),
            Priced("now cheap", 30)});
  }
};

TEST_F(DeleteMatchingReviewTest, FewChangesNeedNoNewSearch) {
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, DeleteCheap([&] {
                         Upsert({Priced("now dear", 40)});
                         Upsert({Priced("now cheap", 4)});
                       }));
  EXPECT_EQ(outcome.deleted_count, 2);
  EXPECT_TRUE(Has("now dear"));
}

// Other writes would wait for it if it were made at the delete's turn.
TEST_F(DeleteMatchingReviewTest, ManyChangesNeedANewSearchBeforeTheTurn) {
  const auto change = [&] {
    Upsert({Priced("now dear", 40), Priced("now cheap", 4)});
    Upsert({Priced("new", 5)});
  };
  EXPECT_THAT(DeleteCheap(change),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("before_turn")));
  EXPECT_EQ(catalog_->snapshot()->item_count(), 5);
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, DeleteCheap(change, 2));
  EXPECT_EQ(outcome.deleted_count, 3);
  EXPECT_TRUE(Has("now dear"));
  EXPECT_TRUE(Has("dear"));
  EXPECT_EQ(catalog_->snapshot()->item_count(), 2);
}

// The log has them all, and is read under the lock.
TEST_F(DeleteMatchingReviewTest, ChangesOfOneItemCountEachTime) {
  const auto change = [&] {
    for (const double price : {4, 40, 4}) Upsert({Priced("now cheap", price)});
  };
  EXPECT_THAT(DeleteCheap(change),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("before_turn")));
}

// Runs `write` whenever a search lets others work.
class WritesMeanwhile final : public Yielder {
 public:
  explicit WritesMeanwhile(std::function<void()> write)
      : write_(std::move(write)) {
    set_yield_time(SteadyTime::min());
    interrupt_.yielder = this;
  }
  void Yield() override { write_(); }
  const Interrupt& interrupt() const { return interrupt_; }

 private:
  const std::function<void()> write_;
  Interrupt interrupt_;
};

TEST_F(DeleteMatchingReviewTest, ADeleteEndsThoughWritesOutdateEverySearch) {
  int write_count = 0;
  WritesMeanwhile writes([&] {
    const double price = ++write_count % 2 == 0 ? 1 : 20;
    Upsert({Priced("a", price), Priced("b", 21 - price), Priced("c", 1)});
  });
  // It has three searches of its own.
  ASSERT_OK(ArmFailPoint("delete_matching.before_turn:3=error"));
  EXPECT_THAT(catalog_->DeleteMatching(Cheap(), "", writes.interrupt()),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("before_turn")));
  ASSERT_OK(ArmFailPoint("delete_matching.before_turn:4=error"));
  ASSERT_OK_AND_ASSIGN(
      const WriteOutcome outcome,
      catalog_->DeleteMatching(Cheap(), "", writes.interrupt()));
  EXPECT_EQ(outcome.deleted_count, 4);
  EXPECT_EQ(Has("a"), write_count % 2 == 1);
  EXPECT_EQ(Has("b"), write_count % 2 == 0);
  EXPECT_EQ(catalog_->snapshot()->item_count(), 3);
}

class DeleteMatchingIndexedTest : public DeleteMatchingTest {
 protected:
  void SetUp() override { Open(IndexKind::kIvf, {}); }
};

TEST_F(DeleteMatchingIndexedTest, TheLogOfChangesMayBeCutMeanwhile) {
  std::vector<Item> items;
  for (int i = 0; i < 6000; ++i) {
    items.push_back(Priced("i" + std::to_string(i), i % 2 == 0 ? 1 : 20));
  }
  Upsert(items);
  const auto cut = [&] {
    Upsert({Priced("i0", 30), Priced("i1", 3)});
    catalog_->AwaitIndexes();
  };
  // It searches again before it has another turn.
  EXPECT_THAT(DeleteCheap(cut),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("before_turn")));
  EXPECT_EQ(catalog_->snapshot()->item_count(), 6000);
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, DeleteCheap(cut, 2));
  // There is no log of the two.
  EXPECT_TRUE(
      absl::IsDataLoss(items_->ScanChanges(1, [](auto) { return true; })));
  EXPECT_EQ(outcome.deleted_count, 3000);
  EXPECT_TRUE(Has("i0"));
  EXPECT_FALSE(Has("i1"));
}

TEST_F(DeleteMatchingTest, ARepeatIsAnsweredWithoutASearch) {
  Upsert({Priced("cheap", 1)});
  const Filter filter = Filter::Exists("price");
  ASSERT_OK_AND_ASSIGN(const WriteOutcome first,
                       catalog_->DeleteMatching(filter, "once"));
  Upsert({Priced("new", 1)});
  ASSERT_OK(ArmFailPoint("delete_matching.before_turn=error"));
  ASSERT_OK_AND_ASSIGN(const WriteOutcome repeat,
                       catalog_->DeleteMatching(filter, "once"));
  EXPECT_EQ(repeat.sequence, first.sequence);
  EXPECT_EQ(repeat.deleted_count, 1);
  EXPECT_TRUE(Has("new"));
}

TEST_F(DeleteMatchingTest, AWriteWhoseTimeIsOverInLineIsNotDone) {
  Upsert({Priced("cheap", 1)});
  ASSERT_OK(ArmFailPoint("delete_matching.before_log=wait"));
  std::thread deleting([&] {
    EXPECT_OK(catalog_->DeleteMatching(Filter::Exists("price"), ""));
  });
  while (WaitingAtFailPoints() == 0) std::this_thread::yield();
  Interrupt late;
  late.deadline = SteadyAfter(absl::Milliseconds(50));
  std::vector<absl::Status> statuses(3);
  std::thread upserting([&] {
    const std::vector<Item> items = {Priced("late", 1)};
    statuses[0] = catalog_->Upsert(items, "", {}, late).status();
  });
  std::thread erasing([&] {
    const std::vector<std::string> ids = {"cheap"};
    statuses[1] = catalog_->Delete(ids, "", {}, late).status();
  });
  std::thread updating([&] {
    ItemPatch patch;
    patch.id = "cheap";
    patch.attributes = {{0, AttributeValue(5.0)}};
    statuses[2] =
        catalog_->Update({&patch, 1}, "", {}, kMaxAttributeBytes, late)
            .status();
  });
  while (catalog_->waiting_write_count() < 4 || SteadyNow() < late.deadline) {
    std::this_thread::yield();
  }
  ASSERT_OK(ArmFailPoint(""));
  for (std::thread* thread : {&deleting, &upserting, &erasing, &updating}) {
    thread->join();
  }
  for (const absl::Status& status : statuses) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  }
  EXPECT_EQ(catalog_->snapshot()->item_count(), 0);
  EXPECT_EQ(catalog_->snapshot()->sequence, 2);
}

}  // namespace
}  // namespace attendant
