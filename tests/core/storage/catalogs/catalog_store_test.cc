#include "core/storage/catalogs/catalog_store.h"

#include <rocksdb/write_batch.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/storage/test_store.h"
#include "tests/support/look_counter.h"
#include "tests/support/memory_files.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

class CatalogStoreTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRemembered = 5;

  void Open() {
    catalog_.reset();
    if (list_ == nullptr) {
      ASSERT_OK_AND_ASSIGN(
          list_, Database::Open(directory_ / "list",
                                Database::Mode::kCreateIfMissing, resources_));
    }
    auto database = Database::Open(
        directory_ / "db", Database::Mode::kCreateIfMissing, resources_);
    ASSERT_OK(database);
    auto catalog =
        MakeCatalogStore(*std::move(database), list_.get(), TestRecord(),
                         kRemembered, &files_, segments_);
    ASSERT_OK(catalog);
    catalog_ = *std::move(catalog);
  }
  absl::Status WriteRequest(const std::string& request_id) {
    const std::int64_t sequence = catalog_->sequence() + 1;
    return WriteItems(*catalog_, 0, 1, sequence, request_id);
  }
  // Returns the sequence remembered for the request; 0 if it is forgotten.
  std::int64_t Remembered(const std::string& request_id) {
    const auto found = catalog_->FindRequest(request_id);
    EXPECT_OK(found);
    return found.ok() && found->has_value() ? (*found)->sequence : 0;
  }

  ScratchDirectory directory_;
  MemoryFiles files_;
  const SegmentDirectory segments_{directory_ / "segments", Files()};
  DatabaseResources resources_ = DatabaseResources::Make();
  std::unique_ptr<Database> list_;
  std::unique_ptr<CatalogStore> catalog_;
};

TEST_F(CatalogStoreTest, ManyRequestsAreRememberedByDefault) {
  EXPECT_EQ(kRememberedRequestCount, 100000);
}

TEST_F(CatalogStoreTest, TellsHowItsDatabaseIsDoing) {
  Open();
  const StoreFigures empty = catalog_->figures();
  EXPECT_EQ(empty.memory_bytes(),
            empty.write_buffer_bytes + empty.table_reader_bytes);
  ASSERT_OK(WriteItems(*catalog_, 0, 100, 1));
  const StoreFigures written = catalog_->figures();
  EXPECT_GT(written.write_buffer_bytes, empty.write_buffer_bytes);
  EXPECT_EQ(written.background_error_count, 0);
  EXPECT_FALSE(written.writes_stopped);
  // Reopening the database moves the writes into tables.
  Open();
  const StoreFigures reopened = catalog_->figures();
  EXPECT_GT(reopened.table_bytes, 0);
  EXPECT_EQ(reopened.level0_table_count, 1);
}

TEST_F(CatalogStoreTest, KeepsTheLastRequests) {
  Open();
  for (int i = 1; i <= 12; ++i) ASSERT_OK(WriteRequest(std::to_string(i)));
  for (int i = 1; i <= 12; ++i) {
    EXPECT_EQ(Remembered(std::to_string(i)), i > 7 ? i : 0) << i;
  }
}

TEST_F(CatalogStoreTest, KeepsCountingAfterARestart) {
  Open();
  for (int i = 1; i <= 3; ++i) ASSERT_OK(WriteRequest(std::to_string(i)));
  Open();
  for (int i = 4; i <= 7; ++i) ASSERT_OK(WriteRequest(std::to_string(i)));
  for (int i = 1; i <= 7; ++i) {
    EXPECT_EQ(Remembered(std::to_string(i)), i > 2 ? i : 0) << i;
  }
}

TEST_F(CatalogStoreTest, WritesWithoutRequestForgetNothing) {
  Open();
  ASSERT_OK(WriteRequest("first"));
  for (int i = 0; i < 10; ++i) ASSERT_OK(WriteRequest(""));
  EXPECT_EQ(Remembered("first"), 1);
  EXPECT_EQ(Remembered(""), 0);
}

// The damaged block holds the order of some requests, in the middle.
TEST_F(CatalogStoreTest, WhatCanNotBeForgottenKeepsNothingFromBeingWritten) {
  constexpr std::int64_t kMany = 1000;
  const auto open = [&] {
    catalog_ = nullptr;
    ASSERT_OK_AND_ASSIGN(
        auto database, Database::Open(directory_ / "db",
                                      Database::Mode::kMustExist, resources_));
    ASSERT_OK_AND_ASSIGN(
        catalog_, MakeCatalogStore(std::move(database), list_.get(),
                                   TestRecord(), kMany, &files_, segments_));
  };
  const auto id_of = [](std::int64_t i) {
    return absl::StrCat("request-", 10000 + i, std::string(100, 'x'));
  };
  // Writes requests [begin, end).
  const auto write = [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::string> ids;
    for (std::int64_t i = begin; i < end; ++i) ids.push_back(id_of(i));
    std::vector<StoreWrite> writes(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      writes[i].request_id = ids[i];
      writes[i].outcome.sequence = begin + static_cast<std::int64_t>(i) + 1;
    }
    return catalog_->WriteGroup(writes);
  };
  Open();
  open();
  ASSERT_OK(write(0, kMany));
  open();  // they are in a table now
  catalog_ = nullptr;
  std::string table;
  std::string bytes;
  std::size_t at = std::string::npos;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory_ / "db")) {
    if (entry.path().extension() != ".sst" || at != std::string::npos) continue;
    table = entry.path();
    std::ifstream in(table, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
    // A request's order is stored before its outcome.
    at = bytes.find(id_of(500));
  }
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'R';
  std::ofstream(table, std::ios::binary) << bytes;
  open();
  ASSERT_OK(write(kMany, kMany + 600));
  EXPECT_EQ(Remembered(id_of(300)), 0);
  EXPECT_EQ(Remembered(id_of(kMany + 599)), kMany + 600);
  ASSERT_OK(write(kMany + 600, kMany + 601));
}

TEST_F(CatalogStoreTest, DatabaseOfNoCatalogIsRefused) {
  ASSERT_OK_AND_ASSIGN(
      auto database,
      Database::Open(directory_ / "db", Database::Mode::kCreateIfMissing,
                     resources_));
  rocksdb::WriteBatch batch;
  batch.Put("i1", "an item");
  ASSERT_OK(database->Write(&batch, 1));
  EXPECT_THAT(
      MakeCatalogStore(std::move(database), list_.get(), TestRecord(),
                       kRemembered, &files_, segments_),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr(TestRecord().uid)));
}

TEST_F(CatalogStoreTest, ChangesAreLoggedUntilTheyAreCut) {
  Open();
  const auto write_ids = [&](std::int64_t sequence,
                             std::vector<std::string> ids,
                             std::vector<absl::string_view> deletes) {
    std::vector<Item> items;
    for (std::string& id : ids) {
      items.emplace_back().id = std::move(id);
      items.back().keys = {{1, 2}};
    }
    std::vector<const Item*> upserts;
    for (const Item& item : items) upserts.push_back(&item);
    StoreWrite write;
    write.upserts = upserts;
    write.deletes = deletes;
    write.outcome.sequence = sequence;
    return Write(*catalog_, write);
  };
  const auto changes = [&](std::int64_t sequence) {
    std::vector<std::string> ids;
    EXPECT_OK(catalog_->ScanChanges(sequence, [&](absl::string_view id) {
      ids.emplace_back(id);
      return true;
    }));
    return ids;
  };
  const std::string long_id(128, 'x');
  ASSERT_OK(write_ids(1, {"a", long_id}, {}));
  ASSERT_OK(write_ids(2, {"b"}, {"a", "gone"}));
  ASSERT_OK(write_ids(300, {"c"}, {}));
  EXPECT_EQ(changes(0),
            (std::vector<std::string>{"a", long_id, "b", "a", "gone", "c"}));
  // The third is the first of its write's entry, the fourth in its middle.
  for (const std::size_t most : {1, 3, 4}) {
    std::size_t count = 0;
    EXPECT_OK(catalog_->ScanChanges(
        0, [&](absl::string_view) { return ++count < most; }));
    EXPECT_EQ(count, most);
  }
  Open();
  EXPECT_EQ(changes(1), (std::vector<std::string>{"b", "a", "gone", "c"}));
  ASSERT_OK(catalog_->CutChanges(2));
  EXPECT_EQ(changes(2), (std::vector<std::string>{"c"}));
  EXPECT_THAT(
      catalog_->ScanChanges(1, [](absl::string_view) { return true; }),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("after write 2")));
  // A cut never moves back.
  ASSERT_OK(catalog_->CutChanges(1));
  Open();
  EXPECT_EQ(changes(2), (std::vector<std::string>{"c"}));
  EXPECT_EQ(changes(300), (std::vector<std::string>{}));
}

// RocksDB takes no value of 4 GiB, which the ids of one delete may add up to.
TEST_F(CatalogStoreTest, ManyChangesOfAWriteHaveSeveralEntries) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  std::vector<std::string> ids;
  for (int i = 0; i < 20000; ++i) {
    ids.push_back(absl::StrCat(100000 + i, std::string(150, 'x')));
  }
  const std::vector<absl::string_view> deletes(ids.begin(), ids.end());
  Open();
  for (const std::int64_t sequence : {1, 2}) {
    StoreWrite write;
    write.deletes = deletes;
    write.outcome.sequence = sequence;
    ASSERT_OK(Write(*catalog_, write));
  }
  const auto changes = [&](std::int64_t sequence) {
    std::vector<std::string> changed;
    EXPECT_OK(catalog_->ScanChanges(sequence, [&](absl::string_view id) {
      changed.emplace_back(id);
      return true;
    }));
    return changed;
  };
  EXPECT_EQ(changes(1), ids);
  EXPECT_EQ(changes(0).size(), 2 * ids.size());
  ASSERT_OK(catalog_->CutChanges(1));
  EXPECT_EQ(changes(1), ids);
  catalog_ = nullptr;
  int entry_count = 0;
  ASSERT_OK(ReadWholeDatabase(
      directory_ / "db", resources_, Blocks::kAll, Interrupt(),
      [&](absl::string_view key, absl::string_view value) {
        if (key[0] == 'c') ++entry_count;
        EXPECT_LE(value.size(), kMost + 256);
        return absl::OkStatus();
      }));
  EXPECT_EQ(entry_count, 3);
}

TEST_F(CatalogStoreTest, LooksAtTheInterruptWhateverItReads) {
  Open();
  std::vector<StoreWrite> writes(5000);
  const std::vector<absl::string_view> ids = {"a"};
  for (std::size_t i = 0; i < writes.size(); ++i) {
    writes[i].deletes = ids;
    writes[i].outcome.sequence = static_cast<std::int64_t>(i) + 1;
  }
  ASSERT_OK(catalog_->WriteGroup(writes));
  const auto looks_of = [&](Blocks verified) {
    catalog_ = nullptr;
    LookCounter looks;
    EXPECT_OK(ReadCatalogContents(directory_ / "db", TestRecord().schema,
                                  resources_, verified, looks.interrupt()));
    return looks.count;
  };
  EXPECT_GE(looks_of(Blocks::kRead), 5);
  // Each reopening writes a table.
  for (int i = 0; i < 3; ++i) {
    Open();
    ASSERT_OK(catalog_->PutActiveModel("text", {"taste", i + 1}));
  }
  EXPECT_GE(looks_of(Blocks::kAll), looks_of(Blocks::kRead) + 3);
}

TEST_F(CatalogStoreTest, ActiveModelsStayThisCatalogs) {
  Open();
  const auto active = [&](absl::string_view field) {
    const auto model = catalog_->GetActiveModel(field);
    EXPECT_OK(model);
    return model.ok() ? *model : std::nullopt;
  };
  EXPECT_EQ(active("text"), std::nullopt);
  ASSERT_OK(catalog_->PutActiveModel("text", {"taste", 300}));
  ASSERT_OK(catalog_->PutActiveModel("events", {}));
  ASSERT_OK(WriteItems(*catalog_, 0, 3, 1));
  Open();
  EXPECT_THAT(active("text"), Optional(ModelName{"taste", 300}));
  EXPECT_THAT(active("events"), Optional(ModelName()));
  EXPECT_EQ(active("tex"), std::nullopt);
  ASSERT_OK(catalog_->PutActiveModel("text", {"taste", 301}));
  EXPECT_THAT(active("text"), Optional(ModelName{"taste", 301}));
  // In another database the name may belong to another model.
  catalog_.reset();
  ASSERT_OK_AND_ASSIGN(auto database,
                       Database::Open(directory_ / "db",
                                      Database::Mode::kMustExist, resources_));
  const CatalogRecord other = TestRecord("other", "00000000000000aa");
  ASSERT_OK(AdoptDatabase(*database, other));
  ASSERT_OK_AND_ASSIGN(catalog_,
                       MakeCatalogStore(std::move(database), list_.get(), other,
                                        kRemembered, &files_, segments_));
  EXPECT_EQ(active("text"), std::nullopt);
  EXPECT_EQ(active("events"), std::nullopt);
  EXPECT_EQ(catalog_->sequence(), 1);
}

TEST_F(CatalogStoreTest, OutcomeIsRememberedWhole) {
  Open();
  StoreWrite write;
  write.request_id = "request";
  write.outcome = {0xfedcba9876543210u, 9, 1, 2, 3, 4};
  ASSERT_OK(Write(*catalog_, write));
  Open();
  ASSERT_OK_AND_ASSIGN(const auto found, catalog_->FindRequest("request"));
  EXPECT_THAT(found, Optional(write.outcome));
  EXPECT_EQ(catalog_->sequence(), 9);
}

TEST_F(CatalogStoreTest, AGroupIsWrittenAsItsWritesOneByOne) {
  Open();
  std::vector<Item> items;
  for (int i = 0; i < 3; ++i) items.push_back(TestItem(i));
  const std::vector<const Item*> first = {&items[0], &items[1]};
  const std::vector<const Item*> second = {&items[2]};
  const std::vector<absl::string_view> gone = {items[0].id};
  StoreWrite writes[3];
  writes[0] = {first, {}, "r1", {.sequence = 1, .inserted_count = 2}};
  writes[1] = {second, {}, "", {.sequence = 2, .inserted_count = 1}};
  writes[2] = {{}, gone, "r3", {.sequence = 3, .deleted_count = 1}};
  ASSERT_OK(catalog_->WriteGroup(writes));
  Open();
  EXPECT_EQ(catalog_->sequence(), 3);
  EXPECT_EQ(Remembered("r1"), 1);
  EXPECT_EQ(Remembered("r3"), 3);
  const std::vector<absl::string_view> ids = {items[2].id, items[0].id,
                                              items[1].id, "none"};
  std::vector<std::optional<StoredItem>> stored;
  ASSERT_OK(catalog_->Get(ids, [&](std::size_t i, const auto& item) {
    EXPECT_EQ(i, stored.size());
    stored.push_back(item);
    return absl::OkStatus();
  }));
  ASSERT_EQ(stored.size(), 4);
  EXPECT_EQ(stored[0], (StoredItem{items[2], 2}));
  EXPECT_EQ(stored[1], std::nullopt);
  EXPECT_EQ(stored[2], (StoredItem{items[1], 1}));
  EXPECT_EQ(stored[3], std::nullopt);
  // An error from the visitor ends the iteration.
  int visited = 0;
  EXPECT_THAT(catalog_->Get(ids,
                            [&](std::size_t, const auto&) {
                              ++visited;
                              return absl::CancelledError("enough");
                            }),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("enough")));
  EXPECT_EQ(visited, 1);
}

// Reads from tables and from memory, some ids twice, more than are looked up in
// one batch.
TEST_F(CatalogStoreTest, ManyItemsComeInTheOrderTheyWereAskedFor) {
  constexpr int kItems = 500;
  Open();
  ASSERT_OK(WriteItems(*catalog_, 0, kItems / 2, 1));
  Open();
  ASSERT_OK(WriteItems(*catalog_, kItems / 2, kItems, 2));
  std::vector<int> asked;
  for (int i = 0; i < 2 * kItems; ++i) asked.push_back(i * 7 % (kItems + 10));
  std::vector<std::string> names;
  for (const int i : asked) names.push_back(TestItem(i).id);
  const std::vector<absl::string_view> ids(names.begin(), names.end());
  std::vector<std::optional<StoredItem>> want;
  for (const int i : asked) {
    want.emplace_back();
    if (i < kItems) want.back() = {TestItem(i), i < kItems / 2 ? 1 : 2};
  }
  std::vector<std::optional<StoredItem>> stored;
  ASSERT_OK(catalog_->Get(ids, [&](std::size_t i, const auto& item) {
    EXPECT_EQ(i, stored.size());
    stored.push_back(item);
    return absl::OkStatus();
  }));
  EXPECT_EQ(stored, want);
}

TEST_F(CatalogStoreTest, RequestsOfOneGroupAreForgottenInTheirOrder) {
  Open();
  std::vector<std::string> ids;
  for (int i = 1; i <= 4; ++i) ids.push_back(std::to_string(i));
  for (const std::string& id : ids) ASSERT_OK(WriteRequest(id));
  StoreWrite writes[3];
  const std::string later[] = {"5", "6", "7"};
  for (int i = 0; i < 3; ++i) {
    writes[i].request_id = later[i];
    writes[i].outcome.sequence = 5 + i;
  }
  ASSERT_OK(catalog_->WriteGroup(writes));
  for (int i = 1; i <= 7; ++i) {
    EXPECT_EQ(Remembered(std::to_string(i)), i > 2 ? i : 0) << i;
  }
}

}  // namespace
}  // namespace attendant
