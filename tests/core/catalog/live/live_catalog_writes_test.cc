// What writes check, what they remember, and how they share a sync.
#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "core/base/status.h"
#include "core/catalog/live/live_catalog.h"
#include "core/catalog/segments/mask.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/core/catalog/failing_allocation.h"
#include "tests/support/look_counter.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr WriteCondition kIfAbsent = {.absent = true, .sequence = {}};
WriteCondition IfSequence(std::int64_t sequence) {
  return {.absent = false, .sequence = sequence};
}

using CosineWritesTest = CatalogFixture;

// Also refuses a key whose product with a query would overflow.
TEST_F(CosineWritesTest, AKeyWhoseInverseNormIsNoFloatIsRefused) {
  OpenCatalog(OneFieldSchema(2, ScoreKind::kCosine));
  const std::vector<Item> items = {MakeItem("tiny", {1e-40f, 0}),
                                   MakeItem("small", {1e-37f, 0}),
                                   MakeItem("huge", {3e38f, 3e38f})};
  const auto outcome = catalog_->Import(items, /*if_absent=*/false);
  ASSERT_OK(outcome);
  EXPECT_THAT(outcome->statuses[0],
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want a norm of 1e-38 to 1e+38")));
  EXPECT_OK(outcome->statuses[1]);
  EXPECT_THAT(outcome->statuses[2],
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want a norm of 1e-38 to 1e+38")));
  EXPECT_THAT(catalog_->Upsert(items, ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("items[0].keys[vec]: got norm")));
  // As a float the number is slightly smaller.
  EXPECT_THAT(catalog_->Upsert(std::vector{MakeItem("least", {1e-38f, 0})}, ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got norm 9.99999935")));
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(VectorQuery({1, 0})));
  ASSERT_EQ(answer.items.size(), 1u);
  EXPECT_NEAR(answer.items[0].logit, 1, 1e-5);
}

// A refused item does not replace another item with the same id.
TEST_F(CosineWritesTest, ARefusedItemTakesNoOthersPlace) {
  OpenCatalog(OneFieldSchema(2, ScoreKind::kCosine));
  const Item good = MakeItem("a", {1, 0});
  const Item bad = MakeItem("a", {1e-40f, 0});
  ASSERT_OK_AND_ASSIGN(ImportOutcome outcome,
                       catalog_->Import(std::vector{good, bad}));
  EXPECT_OK(outcome.statuses[0]);
  EXPECT_THAT(outcome.statuses[1],
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("norm")));
  ASSERT_OK_AND_ASSIGN(const auto found, ItemsIn(*catalog_, {"a"}));
  EXPECT_EQ(found[0], good);
  Delete({"a"});
  ASSERT_OK_AND_ASSIGN(
      outcome, catalog_->Import(std::vector{bad, good}, /*if_absent=*/true));
  EXPECT_THAT(outcome.statuses[0],
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("norm")));
  EXPECT_OK(outcome.statuses[1]);
  EXPECT_TRUE(catalog_->snapshot()->Find("a"));
}

class LiveCatalogWritesTest : public CatalogFixture {
 protected:
  void SetUp() override {
    CatalogSchema schema = OneFieldSchema(1);
    schema.attributes = {{"price", AttributeType::kDouble},
                         {"name", AttributeType::kString}};
    OpenCatalog(schema);
  }

  // Returns the stored item; one with an empty id if there is none.
  StoredItem Stored(const std::string& id) {
    StoredItem stored;
    const std::vector<std::string> ids = {id};
    const auto keep = [&](StoredItem item) {
      stored = std::move(item);
      return absl::OkStatus();
    };
    if (!catalog_->VisitStored(ids, keep).ok()) return StoredItem();
    // Queries see the same.
    const auto seen = ItemsIn(*catalog_, ids);
    EXPECT_OK(seen);
    if (!seen.ok()) return StoredItem();
    EXPECT_EQ((*seen)[0], stored);
    return stored;
  }
  std::int64_t SequenceOf(const std::string& id) { return Stored(id).sequence; }
  float KeyOf(const std::string& id) {
    const StoredItem item = Stored(id);
    return item.keys.empty() ? -1 : item.keys[0][0];
  }

  absl::StatusOr<WriteOutcome> UpsertIf(const Item& item,
                                        const WriteCondition& condition,
                                        absl::string_view request_id = "") {
    return catalog_->Upsert({&item, 1}, request_id, {&condition, 1});
  }
  absl::StatusOr<WriteOutcome> Update(
      const ItemPatch& patch, absl::string_view request_id = "",
      std::span<const WriteCondition> if_ = {}) {
    return catalog_->Update({&patch, 1}, request_id, if_);
  }
  static ItemPatch Priced(const std::string& id, double price) {
    ItemPatch patch;
    patch.id = id;
    patch.attributes = {{0, AttributeValue(price)}};
    return patch;
  }

  void Hold() {
    MutexLock lock(&disk_->mutex);
    disk_->held = true;
  }
  void Release(absl::Status status = absl::OkStatus()) {
    MutexLock lock(&disk_->mutex);
    disk_->held = false;
    disk_->write_status = std::move(status);
    disk_->changed.NotifyAll();
  }
  int SyncCount() {
    MutexLock lock(&disk_->mutex);
    return disk_->write_count;
  }
  // Returns once `count` store writes have begun.
  void AwaitSyncs(int count) {
    MutexLock lock(&disk_->mutex);
    while (disk_->write_count < count) disk_->changed.Wait(&disk_->mutex);
  }
  // Starts a write whose sync lasts until Release, then `writes`, which queue
  // behind it one by one.
  std::vector<std::thread> GatherBehindOne(
      std::vector<std::function<void()>> writes) {
    Hold();
    const int before = SyncCount();
    std::vector<std::thread> threads;
    threads.emplace_back([this] { Upsert({MakeItem("first", {0})}); });
    AwaitSyncs(before + 1);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      threads.emplace_back(std::move(writes[i]));
      while (catalog_->waiting_write_count() < static_cast<int>(i) + 2) {
        std::this_thread::yield();
      }
    }
    return threads;
  }
  static void Join(std::vector<std::thread>& threads) {
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_F(LiveCatalogWritesTest, ItemsKeepTheSequenceOfTheirLastWrite) {
  Upsert({MakeItem("a", {1}), MakeItem("b", {1})});
  Upsert({MakeItem("b", {2})});
  EXPECT_EQ(SequenceOf("a"), 1);
  EXPECT_EQ(SequenceOf("b"), 2);
  Restart();
  EXPECT_EQ(catalog_->assigned_sequence(), 2);
  EXPECT_EQ(SequenceOf("a"), 1);
  ASSERT_OK_AND_ASSIGN(const std::vector<StoredItem> items,
                       StoredItems(*catalog_, "", 10));
  ASSERT_EQ(items.size(), 2);
  EXPECT_EQ(items[1].sequence, 2);
}

// Row numbers would run out; no test has that many rows.
TEST_F(LiveCatalogWritesTest, RowsBeyondTheMostAreRefused) {
  LiveCatalogOptions options;
  options.max_row_count = 4;
  OpenCatalog(schema_, options);
  Upsert({MakeItem("a", {1}), MakeItem("b", {2}), MakeItem("c", {3})});
  Upsert({MakeItem("a", {4})});  // the previous row remains
  const auto status =
      catalog_->Upsert(std::vector{MakeItem("b", {5})}, "").status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("to 5 rows, of which it may have 4")));
  EXPECT_EQ(ReasonOf(status), kOverLimit);
  EXPECT_EQ(KeyOf("b"), 2);
  // Deletes need no rows.
  Delete({"b"});
  EXPECT_EQ(catalog_->snapshot()->item_count(), 2);
}

TEST_F(LiveCatalogWritesTest, UpsertIfAbsentInsertsOnce) {
  EXPECT_OK(UpsertIf(MakeItem("a", {1}), kIfAbsent));
  const auto second = UpsertIf(MakeItem("a", {2}), kIfAbsent);
  EXPECT_THAT(second, StatusIs(absl::StatusCode::kAlreadyExists,
                               HasSubstr("items[0]: got 'a', which exists")));
  EXPECT_EQ(ReasonOf(second.status()), "ITEM_EXISTS");
  EXPECT_EQ(FieldOf(second.status()), "items[0]");
  EXPECT_EQ(KeyOf("a"), 1);
  Delete({"a"});
  EXPECT_OK(UpsertIf(MakeItem("a", {3}), kIfAbsent));
  EXPECT_EQ(KeyOf("a"), 3);
}

TEST_F(LiveCatalogWritesTest, UpsertIfTheSequenceMatches) {
  Upsert({MakeItem("a", {1})});
  Upsert({MakeItem("b", {1})});
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome,
                       UpsertIf(MakeItem("a", {2}), IfSequence(1)));
  EXPECT_EQ(outcome.updated_count, 1);
  EXPECT_EQ(SequenceOf("a"), 3);
  const auto stale = UpsertIf(MakeItem("a", {3}), IfSequence(1));
  EXPECT_THAT(stale,
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("items[0]: got an item of sequence 3, want "
                                 "sequence 1")));
  EXPECT_EQ(ReasonOf(stale.status()), "SEQUENCE_MISMATCH");
  EXPECT_THAT(UpsertIf(MakeItem("c", {3}), IfSequence(1)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("got no item")));
  EXPECT_EQ(KeyOf("a"), 2);
}

TEST_F(LiveCatalogWritesTest, ABatchWithAConditionThatFailsIsNotApplied) {
  Upsert({MakeItem("b", {1})});
  const std::vector<Item> items = {MakeItem("a", {2}), MakeItem("b", {2})};
  const WriteCondition conditions[] = {WriteCondition(), kIfAbsent};
  EXPECT_THAT(
      catalog_->Upsert(items, "", conditions),
      StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("items[1]")));
  EXPECT_EQ(Stored("a").id, "");
  EXPECT_EQ(KeyOf("b"), 1);
  EXPECT_EQ(catalog_->snapshot()->sequence, 1);
  const std::vector<std::string> ids = {"b", "a"};
  const WriteCondition both[] = {IfSequence(1), IfSequence(1)};
  EXPECT_THAT(catalog_->Delete(ids, "", both),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("ids[1]")));
  EXPECT_EQ(KeyOf("b"), 1);
}

TEST_F(LiveCatalogWritesTest, DeleteIfTheSequenceMatches) {
  Upsert({MakeItem("a", {1})});
  const std::vector<std::string> ids = {"a"};
  const WriteCondition other[] = {IfSequence(2)};
  EXPECT_THAT(catalog_->Delete(ids, "", other),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("sequence 1")));
  const WriteCondition same[] = {IfSequence(1)};
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome,
                       catalog_->Delete(ids, "", same));
  EXPECT_EQ(outcome.deleted_count, 1);
}

TEST_F(LiveCatalogWritesTest, ConditionsMustFit) {
  const Item item = MakeItem("a", {1});
  const WriteCondition two[] = {kIfAbsent, kIfAbsent};
  EXPECT_THAT(
      catalog_->Upsert({&item, 1}, "", two),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("conditions")));
  EXPECT_THAT(
      UpsertIf(item, {.absent = true, .sequence = 1}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("conditions[0]")));
  EXPECT_THAT(
      UpsertIf(item, IfSequence(-1)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("conditions[0]")));
  const WriteCondition absent[] = {kIfAbsent};
  EXPECT_THAT(
      catalog_->Delete(std::vector<std::string>{"a"}, "", absent),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("conditions[0]")));
  EXPECT_THAT(
      Update(Priced("a", 1), "", absent),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("conditions[0]")));
}

// The condition no longer holds when the write is repeated.
TEST_F(LiveCatalogWritesTest, ARepeatedConditionalWriteReturnsItsFirstOutcome) {
  ASSERT_OK_AND_ASSIGN(const WriteOutcome first,
                       UpsertIf(MakeItem("a", {1}), kIfAbsent, "r1"));
  ASSERT_OK_AND_ASSIGN(const WriteOutcome updated,
                       UpsertIf(MakeItem("a", {2}), IfSequence(1), "r2"));
  Restart();
  ASSERT_OK_AND_ASSIGN(const WriteOutcome repeat,
                       UpsertIf(MakeItem("a", {1}), kIfAbsent, "r1"));
  EXPECT_EQ(repeat, first);
  ASSERT_OK_AND_ASSIGN(const WriteOutcome again,
                       UpsertIf(MakeItem("a", {2}), IfSequence(1), "r2"));
  EXPECT_EQ(again, updated);
  EXPECT_EQ(KeyOf("a"), 2);
  // Another condition counts as different content.
  EXPECT_THAT(
      UpsertIf(MakeItem("a", {2}), IfSequence(2), "r2"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("request_id")));
  // A refused write is not remembered.
  EXPECT_THAT(UpsertIf(MakeItem("a", {1}), kIfAbsent, "r3"),
              StatusIs(absl::StatusCode::kAlreadyExists, ::testing::_));
  Delete({"a"});
  EXPECT_OK(UpsertIf(MakeItem("a", {1}), kIfAbsent, "r3"));
}

TEST_F(LiveCatalogWritesTest, UpdateChangesOnlyWhatItNames) {
  Item item = MakeItem("a", {7});
  item.attributes = {{0, 1.5}, {1, std::string("Anna")}};
  item.opaque_value = "bytes";
  Upsert({item});
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, Update(Priced("a", 2.5)));
  EXPECT_EQ(outcome.updated_count, 1);
  EXPECT_EQ(outcome.sequence, 2);
  item.attributes[0].second = 2.5;
  EXPECT_EQ(Stored("a"), (StoredItem{item, 2}));
  ItemPatch patch;
  patch.id = "a";
  patch.opaque_value = "other";
  patch.keys = {std::vector<float>{8}};
  ASSERT_OK(Update(patch));
  item.opaque_value = "other";
  item.keys[0] = {8};
  EXPECT_EQ(Stored("a"), (StoredItem{item, 3}));
  Restart();
  EXPECT_EQ(Stored("a"), (StoredItem{item, 3}));
  // The item is there once, with its newest key.
  EXPECT_EQ(catalog_->snapshot()->item_count(), 1);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(VectorQuery({1})));
  ASSERT_EQ(answer.items.size(), 1);
  EXPECT_EQ(answer.items[0].logit, 8);
}

TEST_F(LiveCatalogWritesTest, AnUpdateOfAMissingItemAppliesNothing) {
  Upsert({MakeItem("a", {1})});
  const auto missing = catalog_->Update(
      std::vector<ItemPatch>{Priced("a", 1), Priced("b", 1)}, "");
  EXPECT_THAT(missing,
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("items[1]")));
  EXPECT_EQ(ReasonOf(missing.status()), "ITEM_NOT_FOUND");
  EXPECT_EQ(SequenceOf("a"), 1);
}

TEST_F(LiveCatalogWritesTest, AnUpdateMustLeaveAnItemThatFits) {
  Upsert({MakeItem("a", {1})});
  ItemPatch patch;
  patch.id = "a";
  EXPECT_THAT(Update(patch), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("items[0]: got nothing")));
  patch.keys = {std::vector<float>{}};
  EXPECT_THAT(Update(patch), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("items[0].keys")));
  patch.keys = {std::vector<float>{1}, std::vector<float>{1}};
  EXPECT_THAT(Update(patch), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("items[0].keys")));
  patch.keys.clear();
  patch.attributes = {{1, AttributeValue(1.0)}};
  EXPECT_THAT(Update(patch), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("items[0].attributes[name]")));
  EXPECT_THAT(
      catalog_->Update(std::vector<ItemPatch>{Priced("a", 1), Priced("a", 2)},
                       ""),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("items[1].id")));
  EXPECT_EQ(SequenceOf("a"), 1);
}

TEST_F(LiveCatalogWritesTest, UpdatesAreConditionalAndSafeToRepeat) {
  Upsert({MakeItem("a", {1})});
  const WriteCondition one[] = {IfSequence(1)};
  ASSERT_OK_AND_ASSIGN(const WriteOutcome first,
                       Update(Priced("a", 2), "r1", one));
  EXPECT_THAT(Update(Priced("a", 3), "", one),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("items[0]")));
  // The same as for upserts and deletes.
  const auto gone = Update(Priced("gone", 3), "", one);
  EXPECT_THAT(gone, StatusIs(absl::StatusCode::kAborted,
                             HasSubstr("items[0]: got no item")));
  EXPECT_EQ(ReasonOf(gone.status()), "SEQUENCE_MISMATCH");
  Restart();
  ASSERT_OK_AND_ASSIGN(const WriteOutcome repeat,
                       Update(Priced("a", 2), "r1", one));
  EXPECT_EQ(repeat, first);
  EXPECT_THAT(
      Update(Priced("a", 4), "r1", one),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("request_id")));
  // Removing an attribute is different content from setting it.
  ItemPatch removal = Priced("a", 2);
  removal.attributes[0].second = std::nullopt;
  EXPECT_THAT(
      Update(removal, "r1", one),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("request_id")));
}

TEST_F(LiveCatalogWritesTest, DeleteMatchingDeletesWhatTheFilterIsTrueOf) {
  std::vector<Item> items;
  for (int i = 0; i < 3000; ++i) {
    items.push_back(MakeItem("i" + std::to_string(i), {static_cast<float>(i)}));
    if (i % 3 != 0) items.back().attributes = {{0, 1.0 * i}};
  }
  Upsert(items);
  Delete({"i1"});
  const Filter cheap =
      Filter::Compare("price", ComparisonKind::kLess, AttributeValue(2000.0));
  const auto before = catalog_->snapshot();
  const auto count = [&](const Snapshot& snapshot) {
    return CountMatching(snapshot, cheap).value_or(-1);
  };
  EXPECT_EQ(count(*before), 1332);
  EXPECT_EQ(catalog_->snapshot()->sequence, 2);
  LookCounter looks;
  ASSERT_OK_AND_ASSIGN(
      const WriteOutcome outcome,
      catalog_->DeleteMatching(cheap, "r1", looks.interrupt()));
  // The search yields to other work.
  EXPECT_GT(looks.count, 0);
  EXPECT_EQ(outcome.deleted_count, 1332);
  EXPECT_EQ(outcome.sequence, 3);
  EXPECT_EQ(count(*before), 1332);
  EXPECT_EQ(count(*catalog_->snapshot()), 0);
  const auto expect_rest = [&] {
    EXPECT_EQ(catalog_->snapshot()->item_count(), 3000 - 1333);
    EXPECT_EQ(Stored("i2").id, "");
    EXPECT_EQ(KeyOf("i3"), 3);
    EXPECT_EQ(KeyOf("i2000"), 2000);
  };
  expect_rest();
  Restart();
  expect_rest();
  // A repeat deletes nothing that was written since.
  Upsert({items[2]});
  ASSERT_OK_AND_ASSIGN(const WriteOutcome repeat,
                       catalog_->DeleteMatching(cheap, "r1"));
  EXPECT_EQ(repeat, outcome);
  EXPECT_EQ(KeyOf("i2"), 2);
  EXPECT_THAT(
      catalog_->DeleteMatching(Filter::Exists("price"), "r1"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("request_id")));
  EXPECT_THAT(
      catalog_->DeleteMatching(Filter::Exists("nothing"), ""),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("filter")));
}

TEST_F(LiveCatalogWritesTest, ImportIfAbsentKeepsWhatIsThere) {
  Upsert({MakeItem("a", {1})});
  ASSERT_OK_AND_ASSIGN(
      const ImportOutcome outcome,
      catalog_->Import(std::vector{MakeItem("a", {2}), MakeItem("b", {2}),
                                   MakeItem("b", {3})},
                       /*if_absent=*/true));
  EXPECT_THAT(outcome.statuses[0],
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'a'")));
  EXPECT_OK(outcome.statuses[1]);
  EXPECT_THAT(outcome.statuses[2],
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'b'")));
  EXPECT_EQ(KeyOf("a"), 1);
  EXPECT_EQ(KeyOf("b"), 2);
  // Nothing is left to write.
  ASSERT_OK_AND_ASSIGN(
      const ImportOutcome again,
      catalog_->Import(std::vector{MakeItem("b", {4})}, /*if_absent=*/true));
  EXPECT_EQ(again.sequence, 2);
  EXPECT_EQ(KeyOf("b"), 2);
}

TEST_F(LiveCatalogWritesTest, WritesThatGatherShareOneSync) {
  constexpr int kCount = 7;
  std::vector<std::int64_t> sequences(kCount);
  std::vector<std::function<void()>> writes;
  for (int i = 0; i < kCount; ++i) {
    writes.push_back([&, i] {
      const auto outcome = catalog_->Upsert(
          std::vector{MakeItem("a", {static_cast<float>(i)})}, "");
      ASSERT_OK(outcome);
      sequences[i] = outcome->sequence;
      EXPECT_EQ(outcome->inserted_count, i == 0 ? 1 : 0);
    });
  }
  auto threads = GatherBehindOne(std::move(writes));
  // None of the writes is visible, and only the first has a sequence assigned.
  EXPECT_EQ(catalog_->snapshot()->sequence, 0);
  EXPECT_EQ(catalog_->assigned_sequence(), 1);
  Release();
  Join(threads);
  EXPECT_EQ(SyncCount(), 2);
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(sequences[i], i + 2);
  EXPECT_EQ(KeyOf("a"), kCount - 1);
  EXPECT_EQ(SequenceOf("a"), kCount + 1);
  EXPECT_EQ(catalog_->snapshot()->item_count(), 2);
  Restart();
  EXPECT_EQ(KeyOf("a"), kCount - 1);
}

TEST_F(LiveCatalogWritesTest, EachWriteOfAGroupHasItsOwnOutcome) {
  absl::Status absent;
  absl::Status mismatch;
  WriteOutcome deleted;
  WriteOutcome updated;
  Upsert({MakeItem("b", {1}), MakeItem("c", {1})});  // sequence 1
  auto threads = GatherBehindOne({
      [&] { Upsert({MakeItem("a", {1})}); },
      [&] { absent = UpsertIf(MakeItem("a", {2}), kIfAbsent).status(); },
      [&] { mismatch = UpsertIf(MakeItem("c", {2}), IfSequence(9)).status(); },
      [&] {
        deleted = *catalog_->Delete(std::vector<std::string>{"a", "x"}, "");
      },
      [&] { updated = *Update(Priced("b", 3)); },
  });
  Release();
  Join(threads);
  EXPECT_THAT(absent, StatusIs(absl::StatusCode::kAlreadyExists, ::testing::_));
  EXPECT_THAT(mismatch, StatusIs(absl::StatusCode::kAborted, ::testing::_));
  EXPECT_EQ(deleted.deleted_count, 1);
  EXPECT_EQ(deleted.missing_count, 1);
  EXPECT_EQ(updated.sequence, 5);
  EXPECT_EQ(Stored("a").id, "");
  EXPECT_EQ(KeyOf("c"), 1);
  // The refused writes took no sequence, and all others shared one sync.
  EXPECT_EQ(catalog_->snapshot()->sequence, 5);
  EXPECT_EQ(SyncCount(), 3);
}

// Conditions and updates read what is stored, so a write that depends on an
// earlier write of the same group waits for the next group.
TEST_F(LiveCatalogWritesTest, AGroupEndsBeforeWhatReadsItsItems) {
  Upsert({MakeItem("a", {1})});  // sequence 1
  absl::Status first;
  absl::Status second;
  WriteOutcome updated;
  auto threads = GatherBehindOne({
      [&] { first = UpsertIf(MakeItem("a", {2}), IfSequence(1)).status(); },
      [&] { second = UpsertIf(MakeItem("a", {3}), IfSequence(1)).status(); },
      [&] { updated = *Update(Priced("a", 9)); },
  });
  Release();
  Join(threads);
  EXPECT_OK(first);
  EXPECT_THAT(second,
              StatusIs(absl::StatusCode::kAborted, HasSubstr("sequence 3")));
  EXPECT_EQ(updated.sequence, 4);
  EXPECT_EQ(KeyOf("a"), 2);
  EXPECT_EQ(Stored("a").attributes.size(), 1);
}

TEST_F(LiveCatalogWritesTest, TheSameRequestTwiceAtOnceIsWrittenOnce) {
  WriteOutcome outcomes[2];
  absl::Status other;
  auto threads = GatherBehindOne({
      [&] {
        outcomes[0] = *catalog_->Upsert(std::vector{MakeItem("a", {1})}, "r");
      },
      [&] {
        outcomes[1] = *catalog_->Upsert(std::vector{MakeItem("a", {1})}, "r");
      },
      [&] {
        other = catalog_->Upsert(std::vector{MakeItem("a", {2})}, "r").status();
      },
  });
  Release();
  Join(threads);
  EXPECT_EQ(outcomes[0], outcomes[1]);
  EXPECT_EQ(outcomes[0].inserted_count, 1);
  EXPECT_THAT(other, StatusIs(absl::StatusCode::kInvalidArgument,
                              HasSubstr("request_id")));
  EXPECT_EQ(catalog_->snapshot()->sequence, 2);
}

TEST_F(LiveCatalogWritesTest, AGroupThatFailsFailsEveryWriteAndShowsNothing) {
  Upsert({MakeItem("b", {1})});
  absl::Status statuses[4];
  auto threads = GatherBehindOne({
      [&] {
        statuses[0] =
            catalog_->Upsert(std::vector{MakeItem("a", {1})}, "r").status();
      },
      [&] {
        statuses[1] =
            catalog_->Delete(std::vector<std::string>{"b"}, "").status();
      },
      // Its condition is false only on account of the first write, which fails.
      [&] { statuses[2] = UpsertIf(MakeItem("a", {2}), kIfAbsent).status(); },
      [&] {
        statuses[3] =
            catalog_->Import(std::vector{MakeItem("c", {1})}).status();
      },
  });
  // The write being synced succeeds, then the disk is full.
  {
    MutexLock lock(&disk_->mutex);
    disk_->succeed_count = 1;
  }
  Release(absl::ResourceExhaustedError("the disk is full"));
  Join(threads);
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kResourceExhausted, ::testing::_));
  }
  EXPECT_EQ(catalog_->snapshot()->sequence, 2);
  EXPECT_EQ(catalog_->assigned_sequence(), 2);
  EXPECT_EQ(catalog_->snapshot()->item_count(), 2);
  EXPECT_EQ(KeyOf("b"), 1);
  EXPECT_EQ(Stored("a").id, "");
  Release();
  // Its request_id was not remembered either.
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome,
                       catalog_->Upsert(std::vector{MakeItem("a", {5})}, "r"));
  EXPECT_EQ(outcome.sequence, 3);
  EXPECT_EQ(KeyOf("a"), 5);
}

TEST_F(LiveCatalogWritesTest, AGroupWithoutMemoryShowsNothing) {
  absl::Status statuses[2];
  auto threads = GatherBehindOne({
      [&] {
        statuses[0] =
            catalog_->Upsert(std::vector{MakeItem("a", {1})}, "").status();
      },
      [&] {
        statuses[1] =
            catalog_->Upsert(std::vector{MakeItem("b", {1})}, "").status();
      },
  });
  {
    MutexLock lock(&disk_->mutex);
    disk_->succeed_count = 1;
    disk_->out_of_memory = true;
  }
  Release();
  Join(threads);
  EXPECT_THAT(statuses[0],
              StatusIs(absl::StatusCode::kResourceExhausted, ::testing::_));
  EXPECT_THAT(statuses[1],
              StatusIs(absl::StatusCode::kResourceExhausted, ::testing::_));
  EXPECT_EQ(catalog_->snapshot()->item_count(), 1);
}

// Memory is too short even for the error message.
TEST_F(LiveCatalogWritesTest, WithoutAnyMemoryAWriteIsNotTheLast) {
  const Filter all = Filter::Compare("price", ComparisonKind::kEqual, 1.0);
  Item item = MakeItem("a", {1});
  item.attributes = {{0, 1.0}};
  for (const bool closed : {false, true}) {
    Upsert({item});
    if (closed) catalog_->Close();
    bool befell = true;
    for (int nth = 1; befell; ++nth) {
      SCOPED_TRACE(nth);
      bool deleted = false;
      befell = WithoutMemoryAt(
          nth, [&] { deleted = catalog_->DeleteMatching(all, "").ok(); },
          /*later_too=*/true);
      // A write left in the queue would make the next one wait forever.
      ASSERT_EQ(catalog_->waiting_write_count(), 0);
      EXPECT_NE(catalog_->snapshot()->Find("a").has_value(), deleted);
      EXPECT_EQ(catalog_->Upsert(std::vector{item}, "").ok(), !closed);
    }
  }
}

TEST_F(LiveCatalogWritesTest, WritesInLineAreRefusedAfterClose) {
  absl::Status status;
  auto threads = GatherBehindOne({[&] {
    status = catalog_->Delete(std::vector<std::string>{"a"}, "").status();
  }});
  std::thread closer([&] { catalog_->Close(); });
  // Reads are refused at once, even while a write is still being synced.
  while (StoredItems(*catalog_, "", 1).ok()) std::this_thread::yield();
  Release();
  closer.join();
  Join(threads);
  EXPECT_TRUE(status.ok() || absl::IsNotFound(status)) << status;
  EXPECT_THAT(catalog_->Update(std::vector<ItemPatch>{Priced("a", 1)}, ""),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("deleted")));
}

TEST_F(LiveCatalogWritesTest, ReadsOfTheStoreDoNotWaitForASync) {
  Upsert({MakeItem("a", {1})});
  auto threads = GatherBehindOne({});
  EXPECT_EQ(KeyOf("a"), 1);
  EXPECT_OK(StoredItems(*catalog_, "", 10));
  Release();
  Join(threads);
}

TEST_F(LiveCatalogWritesTest, NoWriteHasABaseThatIsBeingTakenBack) {
  Upsert({MakeItem("a", {1}), MakeItem("b", {1})});
  {
    MutexLock lock(&disk_->mutex);
    disk_->take_back_status = absl::UnavailableError("a read is under way");
  }
  const auto unavailable =
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("under way"));
  EXPECT_THAT(Update(Priced("a", 1)), unavailable);
  EXPECT_THAT(UpsertIf(MakeItem("a", {3}), IfSequence(1)), unavailable);
  EXPECT_THAT(catalog_->Upsert(std::vector{MakeItem("c", {1})}, "r"),
              unavailable);
  EXPECT_EQ(catalog_->snapshot()->sequence, 1);
  {
    MutexLock lock(&disk_->mutex);
    disk_->take_back_status = absl::OkStatus();
    disk_->take_back_throws = true;
  }
  EXPECT_THAT(
      Update(Priced("a", 1)),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("memory")));
  {
    MutexLock lock(&disk_->mutex);
    disk_->take_back_throws = false;
  }
  EXPECT_OK(Update(Priced("a", 1)));
  EXPECT_EQ(catalog_->snapshot()->sequence, 2);
}

// Threads write at the same time, each its own items and all of them a shared
// one. The result is that of the writes in the order of their sequences.
// Its record can be read until it is taken back.
TEST_F(LiveCatalogWritesTest, ADeleteByFilterThatFailedIsNotAnsweredAsDone) {
  Upsert({MakeItem("a", {1})});
  const absl::Status error = absl::UnavailableError("a read is under way");
  const Filter all = Filter::Not(Filter::Exists("price"));
  {
    MutexLock lock(&disk_->mutex);
    disk_->fails_after_sync = true;
    disk_->write_status = error;
  }
  EXPECT_EQ(catalog_->DeleteMatching(all, "once").status(), error);
  {
    MutexLock lock(&disk_->mutex);
    ASSERT_EQ(disk_->requests.count("once"), 1u);
    disk_->write_status = absl::OkStatus();
    disk_->take_back_status = error;
  }
  EXPECT_EQ(catalog_->DeleteMatching(all, "once").status(), error);
  // Nor does it matter that the content of what failed was another.
  EXPECT_EQ(catalog_->DeleteMatching(Filter::Exists("price"), "once").status(),
            error);
  {
    MutexLock lock(&disk_->mutex);
    disk_->take_back_status = absl::OkStatus();
  }
  Upsert({MakeItem("b", {1})});
  EXPECT_EQ(SequenceOf("b"), 2);
  EXPECT_EQ(SequenceOf("a"), 1);  // it was not deleted
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome,
                       catalog_->DeleteMatching(all, "once"));
  EXPECT_EQ(outcome.sequence, 3);
  EXPECT_EQ(outcome.deleted_count, 2);
  EXPECT_EQ(Stored("a").id, "");
}

TEST_F(LiveCatalogWritesTest, ManyThreadsLeaveWhatTheirWritesInOrderLeave) {
  constexpr int kThreads = 8;
  constexpr int kWrites = 200;
  struct Done {
    std::string id;
    float key = 0;  // 0: deleted
  };
  std::map<std::int64_t, Done> by_sequence;
  Mutex mutex;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 1; i <= kWrites; ++i) {
        Done done{random() % 4 == 0 ? "shared" : "own" + std::to_string(t),
                  static_cast<float>(t * kWrites + i)};
        absl::StatusOr<WriteOutcome> outcome;
        switch (random() % 4) {
          case 0:
            done.key = 0;
            outcome = catalog_->Delete(std::vector{done.id}, "");
            break;
          case 1: {
            ItemPatch patch;
            patch.id = done.id;
            patch.keys = {std::vector<float>{done.key}};
            outcome = Update(patch);
            break;
          }
          default:
            outcome = catalog_->Upsert(
                std::vector{MakeItem(done.id, {done.key})},
                "r" + std::to_string(t) + "/" + std::to_string(i));
        }
        if (absl::IsNotFound(outcome.status())) continue;  // an update
        ASSERT_OK(outcome);
        // A caller whose write was acknowledged sees it.
        ASSERT_GE(catalog_->snapshot()->sequence, outcome->sequence);
        MutexLock lock(&mutex);
        ASSERT_TRUE(by_sequence.emplace(outcome->sequence, done).second);
      }
    });
  }
  Join(threads);
  std::map<std::string, float> expected;
  std::int64_t next = 1;
  for (const auto& [sequence, done] : by_sequence) {
    ASSERT_EQ(sequence, next++);
    if (done.key == 0) {
      expected.erase(done.id);
    } else {
      expected[done.id] = done.key;
    }
  }
  const auto expect_all = [&] {
    std::map<std::string, float> got;
    const auto snapshot = catalog_->snapshot();
    for (const SegmentView& view : snapshot->segments) {
      for (RowIndex row = 0; row < view.row_end; ++row) {
        if (!view.IsLive(row)) continue;
        EXPECT_TRUE(got.emplace(view.segment->rows->Id(row),
                                view.segment->indexes[0]->Key(row)[0])
                        .second);
      }
    }
    EXPECT_EQ(got, expected);
    EXPECT_EQ(snapshot->item_count(), static_cast<std::int64_t>(got.size()));
  };
  expect_all();
  Restart();
  expect_all();
}

}  // namespace
}  // namespace attendant
