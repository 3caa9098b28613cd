// Snapshots of catalogs: taken, verified, restored, exported and imported while
// the catalogs serve. Damaged snapshots are refused.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/fail_point.h"
#include "core/base/status.h"
#include "core/base/status_details.h"
#include "core/catalog/live/catalog_set.h"
#include "core/storage/snapshots/snapshot_files.h"
#include "core/storage/snapshots/snapshot_stream.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/support/look_counter.h"
#include "tests/support/random_model.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

// Replaces the file instead of overwriting it, as hard links may share its
// bytes.
void Replace(const fs::path& path, const std::string& bytes) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

std::vector<Item> MakeItems(int begin, int end) {
  std::vector<Item> items;
  for (int i = begin; i < end; ++i) {
    items.push_back(
        MakeItem(absl::StrFormat("item-%05d", i), {static_cast<float>(i), 1}));
  }
  return items;
}

std::vector<Item> ItemsOf(const LiveCatalog& catalog) {
  const std::vector<StoredItem> items = *StoredItems(catalog, "", 1 << 20);
  return {items.begin(), items.end()};
}

class StoredSnapshotsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Open();
    ASSERT_OK_AND_ASSIGN(const auto created,
                         set_->Create("shop", OneFieldSchema(2), {}));
    shop_ = created.catalog;
    ASSERT_OK(shop_->Upsert(MakeItems(0, 100), "first"));
  }
  void Open() {
    shop_ = nullptr;
    set_ = nullptr;
    ASSERT_OK_AND_ASSIGN(set_, CatalogSet::Open(directory_.path(), {}));
  }
  SnapshotManifest Take(const std::string& name) {
    LongWork work;
    const auto manifest = set_->CreateSnapshot("shop", name, work);
    EXPECT_OK(manifest);
    return manifest.ok() ? *manifest : SnapshotManifest();
  }
  absl::Status Verify(const std::string& name) {
    LongWork work;
    const auto lease = set_->snapshots().Open({"shop", name});
    if (!lease.ok()) return lease.status();
    return set_->snapshots().Verify(**lease, work).status();
  }
  absl::StatusOr<std::shared_ptr<LiveCatalog>> Restore(
      const std::string& name, const std::string& catalog) {
    LongWork work;
    return set_->RestoreSnapshot({"shop", name}, catalog, work);
  }
  absl::StatusOr<std::string> Export(const std::string& name,
                                     std::size_t chunk = 1000) {
    auto lease = set_->snapshots().Open({"shop", name});
    if (!lease.ok()) return lease.status();
    SnapshotExport stream(&set_->snapshots(), *std::move(lease));
    std::string all;
    while (true) {
      const auto bytes = stream.Next(chunk);
      if (!bytes.ok()) return bytes.status();
      if (bytes->empty()) break;
      all += *bytes;
    }
    EXPECT_EQ(static_cast<std::int64_t>(all.size()), stream.byte_count());
    return all;
  }
  absl::StatusOr<SnapshotManifest> Import(const std::string& bytes,
                                          const std::string& name,
                                          std::size_t chunk = 777) {
    SnapshotImport stream(&set_->snapshots());
    ATTENDANT_RETURN_IF_ERROR(stream.Name("", name));
    for (std::size_t at = 0; at < bytes.size(); at += chunk) {
      const absl::Status status =
          stream.Append(absl::string_view(bytes).substr(at, chunk));
      if (!status.ok()) return status;
    }
    LongWork work;
    return stream.Finish(work);
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const auto list = set_->snapshots().List("");
    EXPECT_OK(list);
    for (const SnapshotManifest& manifest : list->manifests) {
      names.push_back(absl::StrCat(manifest.catalog, "/", manifest.name));
    }
    return names;
  }
  // Expects no half-made snapshots.
  void ExpectNoDrafts() {
    const fs::path partial = directory_ / "snapshots/.partial";
    EXPECT_TRUE(!fs::exists(partial) || fs::is_empty(partial));
  }
  fs::path PathOf(const std::string& name) {
    return directory_ / "snapshots/shop/" + name;
  }

  ScratchDirectory directory_;
  std::unique_ptr<CatalogSet> set_;
  std::shared_ptr<LiveCatalog> shop_;
};

TEST_F(StoredSnapshotsTest, ComesBackItemForItemAsAnotherCatalog) {
  const std::vector<Item> before = ItemsOf(*shop_);
  const SnapshotManifest manifest = Take("s1");
  EXPECT_EQ(manifest.item_count, 100);
  EXPECT_EQ(manifest.sequence, shop_->snapshot()->sequence);
  EXPECT_EQ(manifest.catalog_uid, shop_->record().uid);
  ASSERT_OK(shop_->Upsert(MakeItems(50, 150), ""));
  ASSERT_OK(Verify("s1"));
  ASSERT_OK_AND_ASSIGN(auto old, Restore("s1", "old"));
  EXPECT_EQ(ItemsOf(*old), before);
  EXPECT_EQ(ItemsOf(*shop_).size(), 150u);
  EXPECT_NE(old->record().uid, shop_->record().uid);
  EXPECT_EQ(old->record().schema, shop_->record().schema);
  // The outcome of a request_id is remembered.
  ASSERT_OK_AND_ASSIGN(const WriteOutcome again,
                       old->Upsert(MakeItems(0, 100), "first"));
  EXPECT_EQ(again.sequence, manifest.sequence);
  // Both catalogs change independently, also after a restart.
  ASSERT_OK(old->Upsert(MakeItems(500, 501), ""));
  ASSERT_OK(shop_->Delete(std::vector<std::string>{"item-00000"}, ""));
  old = nullptr;
  Open();
  ASSERT_OK_AND_ASSIGN(const auto reopened, set_->Get("old"));
  EXPECT_EQ(ItemsOf(*reopened).size(), 101u);
  ASSERT_OK_AND_ASSIGN(const auto shop, set_->Get("shop"));
  EXPECT_EQ(ItemsOf(*shop).size(), 149u);
  EXPECT_OK(Verify("s1"));
}

TEST_F(StoredSnapshotsTest, OutlivesItsCatalogAndARestart) {
  const std::vector<Item> before = ItemsOf(*shop_);
  Take("s1");
  shop_ = nullptr;
  ASSERT_OK(set_->Delete("shop"));
  Open();
  EXPECT_THAT(Names(), ElementsAre("shop/s1"));
  ASSERT_OK_AND_ASSIGN(const auto back, Restore("s1", "shop"));
  EXPECT_EQ(ItemsOf(*back), before);
}

TEST_F(StoredSnapshotsTest, HoldsAllThatWasAcknowledgedWhileWritesGoOn) {
  std::atomic<int> acknowledged = 100;
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 100; !stop.load(); i += 10) {
      ASSERT_OK(shop_->Upsert(MakeItems(i, i + 10), ""));
      acknowledged.store(i + 10);
    }
  });
  for (int round = 0; round < 5; ++round) {
    const std::string name = absl::StrCat("s", round);
    const int before = acknowledged.load();
    const SnapshotManifest manifest = Take(name);
    EXPECT_GE(manifest.item_count, before);
    EXPECT_EQ(manifest.item_count % 10, 0) << "half a write";
    EXPECT_OK(Verify(name));
  }
  stop.store(true);
  writer.join();
  ASSERT_OK_AND_ASSIGN(const auto old, Restore("s2", "old"));
  const std::vector<Item> items = ItemsOf(*old);
  EXPECT_EQ(items, MakeItems(0, static_cast<int>(items.size())));
}

TEST_F(StoredSnapshotsTest, HoldsAttributesThatAreAddedWhileItIsTaken) {
  ASSERT_OK(ArmFailPoint("snapshot.before_files=wait"));
  std::thread taking([this] { Take("now"); });
  while (WaitingAtFailPoints() == 0) std::this_thread::yield();
  CatalogSchema schema = OneFieldSchema(2);
  schema.attributes = {{"sold", AttributeType::kInt64}};
  EXPECT_OK(set_->Update("shop", schema, {}));
  Item item = MakeItem("new", {1, 2});
  item.attributes = {{0, std::int64_t{7}}};
  EXPECT_OK(shop_->Upsert(std::vector{item}, ""));
  ASSERT_OK(ArmFailPoint(""));
  taking.join();
  ASSERT_OK_AND_ASSIGN(const auto restored, Restore("now", "other"));
  EXPECT_EQ(restored->record().schema, schema);
  EXPECT_EQ(ItemsOf(*restored), ItemsOf(*shop_));
}

TEST_F(StoredSnapshotsTest, NamesAreChosenOrChecked) {
  const SnapshotManifest first = Take("");
  EXPECT_THAT(first.name, HasSubstr("-1"));
  EXPECT_OK(Verify(first.name));
  Take("s1");
  LongWork work;
  const auto again = set_->CreateSnapshot("shop", "s1", work);
  EXPECT_THAT(again,
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'s1'")));
  EXPECT_EQ(ReasonOf(again.status()), "SNAPSHOT_EXISTS");
  EXPECT_THAT(DetailsOf(again.status()),
              ElementsAre(Pair("catalog", "shop"), Pair("snapshot", "s1")));
  for (const char* bad : {"S", "../x", ".partial", "a/b"}) {
    EXPECT_THAT(
        set_->CreateSnapshot("shop", bad, work),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("name")));
    EXPECT_THAT(set_->snapshots().Open({"shop", bad}),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(bad)));
    EXPECT_THAT(Restore("s1", bad), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("new_catalog")));
  }
  EXPECT_THAT(set_->CreateSnapshot("none", "x", work),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'none'")));
  ExpectNoDrafts();
}

TEST_F(StoredSnapshotsTest, RestoresOnlyToANameThatIsFree) {
  Take("s1");
  EXPECT_THAT(Restore("s1", "shop"),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'shop'")));
  ASSERT_OK(set_->SetAlias("window", "shop", std::nullopt));
  EXPECT_THAT(Restore("s1", "window"),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("alias")));
  EXPECT_THAT(Restore("none", "old"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'none'")));
  EXPECT_EQ(set_->Resolve("window"), "shop");
  EXPECT_EQ(set_->Resolve("none"), "none");
}

TEST_F(StoredSnapshotsTest, IsNotRestoredPastTheMemoryLimit) {
  Take("s1");
  shop_ = nullptr;
  set_ = nullptr;
  CatalogSet::Options options;
  options.memory_limit_bytes = 1 << 20;
  ASSERT_OK_AND_ASSIGN(set_, CatalogSet::Open(directory_.path(), options));
  EXPECT_THAT(Restore("s1", "old"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("a restored catalog")));
  EXPECT_EQ(set_->List("", 10).size(), 1u);
}

// The restore must not reserve memory for keys that find no file.
TEST_F(StoredSnapshotsTest, IsNotRestoredWhereItsKeysFindNoFiles) {
  CatalogSchema schema = OneFieldSchema(2);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  schema.key_fields[0].keys_on_disk = true;
  ASSERT_OK_AND_ASSIGN(const auto created, set_->Create("keys", schema, {}));
  ASSERT_OK(created.catalog->Import(MakeItems(0, 8000)));
  LongWork work;
  ASSERT_OK(set_->CreateSnapshot("keys", "s1", work));
  const fs::path keys = directory_ / "keys";
  fs::remove_all(keys);
  std::ofstream(keys) << "no directory";
  const auto catalog_count = [this] {
    return std::distance(fs::directory_iterator(directory_ / "items"),
                         fs::directory_iterator());
  };
  const auto before = catalog_count();
  const auto refused = set_->RestoreSnapshot({"keys", "s1"}, "old", work);
  EXPECT_THAT(refused.status().ToString(), HasSubstr(keys.string()));
  EXPECT_THAT(set_->Get("old"), StatusIs(absl::StatusCode::kNotFound, _));
  EXPECT_EQ(catalog_count(), before);
  fs::remove(keys);
  ASSERT_OK_AND_ASSIGN(const auto restored,
                       set_->RestoreSnapshot({"keys", "s1"}, "old", work));
  EXPECT_EQ(restored->snapshot()->item_count(), 8000);
}

TEST_F(StoredSnapshotsTest, RemovalSparesWhatIsInUse) {
  Take("s1");
  {
    ASSERT_OK_AND_ASSIGN(const auto lease,
                         set_->snapshots().Open({"shop", "s1"}));
    const absl::Status refused = set_->snapshots().Remove({"shop", "s1"});
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("'s1'")));
    EXPECT_EQ(ReasonOf(refused), "SNAPSHOT_IN_USE");
    EXPECT_THAT(DetailsOf(refused),
                ElementsAre(Pair("catalog", "shop"), Pair("snapshot", "s1")));
  }
  ASSERT_OK(set_->snapshots().Remove({"shop", "s1"}));
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_THAT(set_->snapshots().Remove({"shop", "s1"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'s1'")));
  ExpectNoDrafts();
}

TEST_F(StoredSnapshotsTest, EveryDamagedFileIsRefusedByName) {
  Take("s1");
  const std::vector<Item> items = ItemsOf(*shop_);
  std::set<std::string> parts;
  for (const auto& entry : fs::recursive_directory_iterator(PathOf("s1"))) {
    if (!entry.is_regular_file()) continue;
    const std::string part = fs::relative(entry.path(), PathOf("s1")).string();
    parts.insert(part);
    const std::string bytes = ReadAll(entry.path());
    const auto expect_refused = [&](const std::string& how) {
      EXPECT_THAT(Verify("s1"),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr(part)))
          << how;
      const auto restored = Restore("s1", "old");
      EXPECT_THAT(restored,
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr(part)))
          << how;
      EXPECT_EQ(ReasonOf(restored.status()), "SNAPSHOT_DAMAGED") << how;
    };
    // The first byte, the last, and one in each sixteenth.
    for (std::size_t i = 0; i <= 16; ++i) {
      std::string damaged = bytes;
      const std::size_t at = std::min(bytes.size() - 1, bytes.size() * i / 16);
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      Replace(entry.path(), damaged);
      expect_refused(absl::StrCat("byte ", at, " flipped"));
    }
    for (const std::size_t size : {std::size_t{0}, bytes.size() - 1}) {
      Replace(entry.path(), bytes.substr(0, size));
      expect_refused(absl::StrCat("cut to ", size));
    }
    Replace(entry.path(), bytes + "x");
    expect_refused("a byte more");
    fs::remove(entry.path());
    expect_refused("missing");
    Replace(entry.path(), bytes);
  }
  EXPECT_TRUE(parts.contains("MANIFEST") && parts.contains("record") &&
              parts.contains("database/CURRENT"));
  Replace(PathOf("s1") / "database" / "000999.sst", "more");
  EXPECT_THAT(Verify("s1"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("000999.sst")));
  fs::remove(PathOf("s1") / "database" / "000999.sst");
  // None of this has changed anything.
  EXPECT_OK(Verify("s1"));
  EXPECT_EQ(set_->List("", 10).size(), 1u);
  EXPECT_EQ(ItemsOf(*shop_), items);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_ / "items"), {}), 1);
}

TEST_F(StoredSnapshotsTest, OneDamagedManifestHidesNoOther) {
  Take("s1");
  Take("s2");
  Replace(PathOf("s1") / "MANIFEST", "?");
  // A snapshot under another snapshot's name.
  fs::copy(PathOf("s2"), PathOf("s3"), fs::copy_options::recursive);
  ASSERT_OK_AND_ASSIGN(const SnapshotList list, set_->snapshots().List("shop"));
  EXPECT_THAT(Names(), ElementsAre("shop/s2"));
  ASSERT_EQ(list.damages.size(), 2u);
  EXPECT_THAT(list.damages.at({"shop", "s3"}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("'s2'")));
  EXPECT_OK(set_->snapshots().Remove({"shop", "s1"}));
}

TEST_F(StoredSnapshotsTest, WhatACrashLeavesGoesAtTheNextOpen) {
  Take("s1");
  // Left by a process that died before the rename.
  fs::create_directories(directory_ / "snapshots/.partial/7/database");
  fs::copy(PathOf("s1"), directory_ / "snapshots/.partial/8",
           fs::copy_options::recursive);
  Open();
  EXPECT_FALSE(fs::exists(directory_ / "snapshots/.partial"));
  EXPECT_THAT(Names(), ElementsAre("shop/s1"));
  EXPECT_OK(Verify("s1"));
}

TEST_F(StoredSnapshotsTest, StopsWhenTold) {
  std::atomic<bool> cancelled = true;
  Interrupt interrupt;
  interrupt.cancelled = &cancelled;
  LongWork work(interrupt);
  EXPECT_THAT(set_->CreateSnapshot("shop", "s1", work),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
  Take("s1");
  LongWork restoring(interrupt);
  EXPECT_THAT(set_->RestoreSnapshot({"shop", "s1"}, "old", restoring),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
  EXPECT_THAT(set_->Get("old"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("old")));
  ExpectNoDrafts();
}

TEST_F(StoredSnapshotsTest, LooksAtTheInterruptAtEachFileThatItCopies) {
  Take("s1");
  const std::int64_t file_count =
      std::distance(fs::directory_iterator(PathOf("s1") / "database"), {});
  LookCounter verifying;
  {
    LongWork work(verifying.interrupt());
    ASSERT_OK_AND_ASSIGN(const auto lease,
                         set_->snapshots().Open({"shop", "s1"}));
    ASSERT_OK(set_->snapshots().Verify(*lease, work));
  }
  LookCounter restoring;
  LongWork work(restoring.interrupt());
  ASSERT_OK(set_->RestoreSnapshot({"shop", "s1"}, "old", work));
  EXPECT_GE(restoring.count, verifying.count + file_count);
}

TEST_F(StoredSnapshotsTest, TellsHowFarItIs) {
  std::int64_t last = 0;
  std::int64_t total = 0;
  LongWork work(Interrupt(), [&](std::int64_t done, std::int64_t of) {
    EXPECT_GE(done, last);
    last = done;
    total = of;
  });
  ASSERT_OK_AND_ASSIGN(const SnapshotManifest manifest,
                       set_->CreateSnapshot("shop", "s1", work));
  EXPECT_EQ(last, manifest.byte_count());
  EXPECT_EQ(total, manifest.byte_count());
}

TEST_F(StoredSnapshotsTest, BringsTheModelsOfTheCatalog) {
  CatalogSchema schema = OneFieldSchema(2);
  schema.key_fields[0].score_kind = ScoreKind::kBilinear;
  const AttentionModel model{BilinearForm{{2, 2, {1, 2, 3, 4}}}};
  ASSERT_OK(set_->models().Create("taste", model, {}));
  schema.key_fields[0].model = {"taste", 1};
  ASSERT_OK(set_->Create("tasted", schema, {}));
  LongWork work;
  ASSERT_OK(set_->CreateSnapshot("tasted", "s1", work));
  ASSERT_OK(set_->Delete("tasted"));
  ASSERT_OK(set_->DeleteModel({"taste", 1}));
  EXPECT_THAT(set_->RestoreSnapshot({"tasted", "s1"}, "a", work,
                                    CatalogSet::MissingModels::kRefuse),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("model 'taste' of the snapshot")));
  EXPECT_THAT(set_->models().List({}, 9), IsEmpty());
  EXPECT_THAT(set_->Get("a"), StatusIs(absl::StatusCode::kNotFound, _));
  // If the version is gone, the restore creates the next one; if it is there,
  // the restore uses it.
  for (const char* name : {"a", "b"}) {
    ASSERT_OK_AND_ASSIGN(const auto restored,
                         set_->RestoreSnapshot({"tasted", "s1"}, name, work));
    EXPECT_EQ(restored->record().schema.key_fields[0].model,
              (ModelName{"taste", 2}));
  }
  EXPECT_OK(set_->RestoreSnapshot({"tasted", "s1"}, "c", work,
                                  CatalogSet::MissingModels::kRefuse));
  ASSERT_OK_AND_ASSIGN(const auto version, set_->models().Get("taste", 2));
  EXPECT_EQ(version->model, model);
  Open();
  EXPECT_OK(set_->Get("b"));
}

// Create refuses such a model too: its index would be rebuilt at each start.
TEST_F(StoredSnapshotsTest, IsNotRestoredWithAModelThatIndexesCanNotHold) {
  constexpr std::int64_t kRows = 8193;
  MultiHeadProjections heads;
  heads.head_count = 1;
  heads.query = heads.key = {{kRows, 2, std::vector<float>(2 * kRows, 1)}, {}};
  ASSERT_OK(set_->models().Create("long", AttentionModel{heads}, {}));
  // Stored by releases that did not check.
  CatalogRecord record = shop_->record();
  shop_ = nullptr;
  set_ = nullptr;
  {
    ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(directory_.path()));
    record.schema.key_fields[0].model = {"long", 1};
    ASSERT_OK(store->Put(record));
  }
  Open();
  Take("s1");
  EXPECT_OK(Verify("s1"));
  EXPECT_THAT(Restore("s1", "old"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("schema.key_fields[0].model: got a model")));
  EXPECT_THAT(set_->Get("old"), StatusIs(absl::StatusCode::kNotFound, _));
  EXPECT_EQ(set_->models().List({}, 9).size(), 1u);
}

// On the other server the models were created in another order.
TEST_F(StoredSnapshotsTest, FieldsKeepTheirModelsWhereTheseAreOtherVersions) {
  CatalogSchema schema = OneFieldSchema(2);
  schema.key_fields[0].score_kind = ScoreKind::kBilinear;
  schema.key_fields.push_back(schema.key_fields[0]);
  schema.key_fields[1].name = "other";
  const AttentionModel models[] = {{BilinearForm{{2, 2, {1, 2, 3, 4}}}},
                                   {BilinearForm{{2, 2, {5, 6, 7, 8}}}}};
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(set_->models().Create("taste", models[i], {}));
    schema.key_fields[i].model = {"taste", i + 1};
  }
  ASSERT_OK(set_->Delete("shop"));
  ASSERT_OK(set_->Create("shop", schema, {}));
  Take("tasted");
  ASSERT_OK_AND_ASSIGN(const std::string bytes, Export("tasted"));
  ScratchDirectory elsewhere;
  ASSERT_OK_AND_ASSIGN(const auto other,
                       CatalogSet::Open(elsewhere.path(), {}));
  ASSERT_OK(other->models().Create("taste", models[1], {}));
  ASSERT_OK(other->models().Create("taste", models[0], {}));
  SnapshotImport stream(&other->snapshots());
  ASSERT_OK(stream.Name("shop", "tasted"));
  ASSERT_OK(stream.Append(bytes));
  LongWork work;
  ASSERT_OK(stream.Finish(work));
  ASSERT_OK_AND_ASSIGN(const auto restored,
                       other->RestoreSnapshot({"shop", "tasted"}, "a", work));
  for (int i = 0; i < 2; ++i) {
    const ModelName name = restored->record().schema.key_fields[i].model;
    ASSERT_OK_AND_ASSIGN(const auto model,
                         other->models().Get(name.name, name.version));
    EXPECT_EQ(model->model, models[i]) << i;
  }
}

TEST_F(StoredSnapshotsTest, GoesOutAndComesInWithTheSameBytes) {
  const std::vector<Item> items = ItemsOf(*shop_);
  Take("s1");
  ASSERT_OK_AND_ASSIGN(const std::string bytes, Export("s1"));
  ASSERT_OK_AND_ASSIGN(const std::string at_once, Export("s1", 1 << 20));
  EXPECT_EQ(bytes, at_once);
  EXPECT_THAT(Import(bytes, ""),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'s1'")));
  ASSERT_OK(Import(bytes, "s2"));
  EXPECT_OK(Verify("s2"));
  // An invalid name is refused before any part is sent.
  SnapshotImport taken(&set_->snapshots());
  EXPECT_THAT(taken.Name("", "Bad Name"),
              StatusIs(kInvalid, HasSubstr("name")));
  ASSERT_OK(taken.Name("", "s2"));
  EXPECT_THAT(
      taken.Append(absl::string_view(bytes).substr(0, bytes.size() / 2)),
      StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'s2'")));
  ASSERT_OK_AND_ASSIGN(const auto restored, Restore("s2", "old"));
  EXPECT_EQ(ItemsOf(*restored), items);
  // Imported byte by byte, on another server.
  ScratchDirectory elsewhere;
  ASSERT_OK_AND_ASSIGN(const auto other,
                       CatalogSet::Open(elsewhere.path(), {}));
  SnapshotImport stream(&other->snapshots());
  ASSERT_OK(stream.Name("store", "copy"));
  for (const char c : bytes) {
    ASSERT_OK(stream.Append(absl::string_view(&c, 1)));
  }
  LongWork work;
  ASSERT_OK_AND_ASSIGN(const SnapshotManifest manifest, stream.Finish(work));
  EXPECT_EQ(manifest.catalog, "store");
  ASSERT_OK_AND_ASSIGN(const auto there,
                       other->RestoreSnapshot({"store", "copy"}, "shop", work));
  EXPECT_EQ(ItemsOf(*there), items);
}

// As version 0.1.0 wrote it: ten items (i, 1) of the catalog "shop".
TEST_F(StoredSnapshotsTest, AFileOfTheFirstFormatComesBack) {
  const std::string bytes = ReadAll(FORMAT_1_SNAPSHOT);
  ASSERT_OK_AND_ASSIGN(const SnapshotManifest manifest, Import(bytes, ""));
  EXPECT_EQ(manifest.name, "first");
  EXPECT_EQ(manifest.item_count, 10);
  ASSERT_OK_AND_ASSIGN(const auto restored, Restore("first", "old"));
  const std::vector<Item> items = ItemsOf(*restored);
  ASSERT_EQ(items.size(), 10u);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(items[i].id, absl::StrCat("item-", i));
    EXPECT_THAT(items[i].keys,
                ElementsAre(ElementsAre(static_cast<float>(i), 1)));
  }
}

TEST_F(StoredSnapshotsTest, ADamagedSnapshotIsNotExported) {
  Take("s1");
  std::string bytes = ReadAll(PathOf("s1") / "record");
  bytes[3] ^= 1;
  Replace(PathOf("s1") / "record", bytes);
  EXPECT_THAT(Export("s1"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("record")));
}

TEST_F(StoredSnapshotsTest, NoDamagedStreamBecomesASnapshot) {
  Take("s1");
  ASSERT_OK_AND_ASSIGN(const std::string bytes, Export("s1"));
  ASSERT_OK(set_->snapshots().Remove({"shop", "s1"}));
  const auto expect_refused = [&](const std::string& stream,
                                  const std::string& how) {
    const auto imported = Import(stream, "");
    EXPECT_TRUE(absl::IsDataLoss(imported.status()) ||
                absl::IsInvalidArgument(imported.status()))
        << how << ": " << imported.status();
  };
  for (std::size_t i = 0; i <= 64; ++i) {
    const std::size_t at = std::min(bytes.size() - 1, bytes.size() * i / 64);
    for (const int bit : {0, 3, 7}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      expect_refused(damaged, absl::StrCat("bit ", bit, " of byte ", at));
    }
    expect_refused(bytes.substr(0, at), absl::StrCat("cut to ", at));
  }
  // The header, the manifest's size and its first bytes, one by one.
  for (std::size_t at = 0; at < 64; ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x80);
    expect_refused(damaged, absl::StrCat("byte ", at));
    expect_refused(bytes.substr(at + 1), absl::StrCat("from ", at + 1));
  }
  expect_refused(bytes + "x", "a byte more");
  expect_refused(bytes + bytes, "twice");
  expect_refused("", "nothing");
  EXPECT_THAT(Names(), IsEmpty());
  ExpectNoDrafts();
  EXPECT_OK(Import(bytes, ""));
}

TEST_F(StoredSnapshotsTest, AManifestCanNotLeadOutOfItsDirectory) {
  SnapshotManifest manifest = Take("s1");
  for (const char* path :
       {"../record", "/etc/passwd", "database/../../x", "database/.hidden",
        "database/a/b", "models/../1", "models/a/0", "models/a/01", "MANIFEST",
        "database/", ""}) {
    SnapshotManifest bad = manifest;
    bad.parts[0].path = path;
    EXPECT_THAT(DecodeSnapshotManifest(EncodeSnapshotManifest(bad)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("MANIFEST")))
        << path;
  }
  for (const std::int64_t size : {std::int64_t{-1}, INT64_MAX}) {
    SnapshotManifest bad = manifest;
    bad.parts[0].size = size;
    EXPECT_THAT(DecodeSnapshotManifest(EncodeSnapshotManifest(bad)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("size")));
  }
  SnapshotManifest twice = manifest;
  twice.parts.push_back(twice.parts[0]);
  EXPECT_THAT(DecodeSnapshotManifest(EncodeSnapshotManifest(twice)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("twice")));
  ASSERT_OK_AND_ASSIGN(
      const SnapshotManifest same,
      DecodeSnapshotManifest(EncodeSnapshotManifest(manifest)));
  EXPECT_EQ(same, manifest);
}

TEST_F(StoredSnapshotsTest, AManifestHasSoManyPartsAtMost) {
  SnapshotManifest manifest = Take("s1");
  const std::string hash = manifest.parts[0].hash;
  for (int i = 0; manifest.parts.size() < 10000; ++i) {
    manifest.parts.push_back({absl::StrCat("database/", i, ".more"), 0, hash});
  }
  EXPECT_OK(DecodeSnapshotManifest(EncodeSnapshotManifest(manifest)));
  manifest.parts.push_back({"database/last", 0, hash});
  EXPECT_THAT(DecodeSnapshotManifest(EncodeSnapshotManifest(manifest)),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("parts: got 10001, want at most 10000")));
}

}  // namespace
}  // namespace attendant
