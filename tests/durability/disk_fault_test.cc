// One call to the disk fails, at each place of a fixed history: no write is
// acknowledged that is not durable, reads go on, writes go on by themselves
// once the disk is well, and after a restart nothing is lost.
//
//   disk_fault_test --points=500     the long form: each call of longer
//                                    histories, so many at least
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/catalog/live/catalog_set.h"
#include "core/storage/files/files.h"
#include "core/storage/rocks/database.h"
#include "tests/durability/faulty_file_system.h"
#include "tests/durability/flags.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

bool IsLong() { return Flag("points", 0) > 0; }

int WriteCount() { return IsLong() ? 16 : 8; }

class DiskFaultTest : public ::testing::Test {
 protected:
  // All of them, unless a filter left some tests out.
  static void TearDownTestSuite() {
    RecordProperty("points", point_count_);
    std::printf("%d points\n", point_count_);
    const auto& all = *::testing::UnitTest::GetInstance();
    if (all.test_to_run_count() == all.total_test_count()) {
      EXPECT_GE(point_count_, Flag("points", Short(200)));
    }
  }

  // So many places at which a call failed.
  static void CountPoints(int count, int least) {
    EXPECT_GE(count, least);
    point_count_ += count;
  }

 private:
  static int point_count_;
};

int DiskFaultTest::point_count_ = 0;

CatalogSchema SchemaOf(IndexKind index_kind) {
  CatalogSchema schema;
  KeyFieldSchema field;
  field.name = "key";
  field.dim = 2;
  field.index_kind = index_kind;
  schema.key_fields = {field};
  return schema;
}

Item ItemOf(int i) {
  Item item;
  item.id = absl::StrCat("item", 100 + i);
  item.keys = {{static_cast<float>(i), 1}};
  return item;
}

// Of one catalog on a disk that may fail. Writes are of one item each.
class FaultyCatalog {
 public:
  // What a power cut leaves depends on the seed.
  explicit FaultyCatalog(IndexKind index_kind = IndexKind::kFlat,
                         std::uint64_t seed = 1,
                         const LiveCatalogOptions& options = {})
      : schema_(SchemaOf(index_kind)),
        options_(options),
        files_(std::make_shared<FaultyFileSystem>(path(), seed)) {}

  // From the next Open on; of keys where there is no catalog yet.
  void KeepKeysOnDisk() { schema_.key_fields[0].keys_on_disk = true; }
  void LimitMemory(std::int64_t bytes) { memory_limit_bytes_ = bytes; }

  FaultyFileSystem& files() { return *files_; }
  std::string path() const { return directory_ / "data"; }

  absl::Status Open() {
    Close();
    CatalogSet::Options options;
    options.store.file_system = files_;
    options.catalog = options_;
    options.memory_limit_bytes = memory_limit_bytes_;
    ATTENDANT_ASSIGN_OR_RETURN(set_, CatalogSet::Open(path(), options));
    for (const auto& [name, damage] : set_->damages()) return damage;
    ATTENDANT_ASSIGN_OR_RETURN(const auto created,
                               set_->Create("shop", schema_, {}));
    catalog_ = created.catalog;
    return absl::OkStatus();
  }
  void Close() {
    catalog_ = nullptr;
    set_ = nullptr;
  }
  // After a power cut.
  absl::Status OpenAfterCut() {
    files_->CutPowerAt(1, /*zeros=*/false);
    EXPECT_OK(Files(files_).ReplaceFile(path() + "/after", "the cut"));
    Close();
    files_->RestoreAfterCut();
    return Open();
  }

  absl::Status Write() {
    const Item item = ItemOf(next_++);
    const absl::Status status =
        catalog_->Upsert(std::vector<Item>{item}, "").status();
    (status.ok() ? acknowledged_ : failed_).push_back(item);
    return status;
  }

  // Has all built anew, until it is opened again.
  absl::Status WantIndex(IndexKind kind) {
    return catalog_->SetDefaults(SchemaOf(kind).key_fields, {NamedModel()},
                                 [] { return absl::OkStatus(); });
  }

  // What was acknowledged, and nothing that failed.
  void ExpectAcknowledged() {
    const auto snapshot = catalog_->snapshot();
    for (const Item& item : acknowledged_) {
      const auto found = ItemsIn(*catalog_, {item.id});
      ASSERT_OK(found);
      EXPECT_EQ(found->front(), item);
    }
    for (const Item& item : failed_) {
      EXPECT_FALSE(snapshot->Find(item.id)) << item.id;
    }
    EXPECT_EQ(snapshot->item_count(),
              static_cast<std::int64_t>(acknowledged_.size()));
    // And so it is stored.
    ASSERT_OK_AND_ASSIGN(const auto stored, StoredItems(*catalog_, "", 1000));
    ASSERT_EQ(stored.size(), acknowledged_.size());
    for (std::size_t i = 0; i < stored.size(); ++i) {
      EXPECT_EQ(static_cast<const Item&>(stored[i]), acknowledged_[i]);
    }
  }

  std::set<std::string> SegmentFileNames() const {
    std::set<std::string> names;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(path() + "/segments")) {
      if (entry.is_regular_file()) names.insert(entry.path().filename());
    }
    return names;
  }

  CatalogSet& set() { return *set_; }
  LiveCatalog& catalog() { return *catalog_; }

  // The stored snapshots that there are are whole.
  void ExpectWholeSnapshots() {
    const auto list = set_->snapshots().List("");
    ASSERT_OK(list);
    EXPECT_TRUE(list->damages.empty());
    for (const SnapshotManifest& manifest : list->manifests) {
      LongWork work;
      ASSERT_OK_AND_ASSIGN(
          const auto lease,
          set_->snapshots().Open({manifest.catalog, manifest.name}));
      EXPECT_OK(set_->snapshots().Verify(*lease, work));
    }
  }

 private:
  const ScratchDirectory directory_;
  CatalogSchema schema_;
  std::int64_t memory_limit_bytes_ = 0;
  const LiveCatalogOptions options_;
  const std::shared_ptr<FaultyFileSystem> files_;
  std::unique_ptr<CatalogSet> set_;
  std::shared_ptr<LiveCatalog> catalog_;
  int next_ = 0;
  std::vector<Item> acknowledged_;
  std::vector<Item> failed_;
};

std::string Text(const FileFault& fault) {
  return absl::StrCat("kind ", static_cast<int>(fault.kind), ", call ",
                      static_cast<int>(fault.call), " number ", fault.nth);
}

// Once the disk is well, and after a restart.
void ExpectGoesOn(FaultyCatalog& catalog) {
  catalog.ExpectAcknowledged();
  catalog.files().InjectNothing();
  EXPECT_OK(catalog.Write());
  catalog.ExpectAcknowledged();
  EXPECT_OK(catalog.Open());
  catalog.ExpectAcknowledged();
  EXPECT_OK(catalog.Write());
}

// Returns false if the history has no such call.
bool FailOneWrite(const FileFault& fault) {
  SCOPED_TRACE(Text(fault));
  FaultyCatalog catalog;
  EXPECT_OK(catalog.Open());
  for (int i = 0; i < 3; ++i) EXPECT_OK(catalog.Write());
  catalog.files().Inject(fault);
  absl::Status failed;
  for (int i = 0; i < WriteCount() && failed.ok(); ++i) {
    failed = catalog.Write();
  }
  const bool befell = catalog.files().befell();
  // The mark of what was acknowledged may fail: the next one makes up for it.
  EXPECT_TRUE(befell || failed.ok()) << failed;
  if (fault.kind == FileFault::Kind::kNoSpace && !failed.ok()) {
    EXPECT_EQ(failed.code(), absl::StatusCode::kResourceExhausted) << failed;
  }
  if (fault.kind == FileFault::Kind::kNoRights && !failed.ok()) {
    EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable) << failed;
    EXPECT_EQ(ReasonOf(failed), kFilesNotAccessible);
  }
  ExpectGoesOn(catalog);
  return befell;
}

TEST_F(DiskFaultTest, AFailedWriteIsNotAcknowledgedAndNotTheEnd) {
  int befell = 0;
  for (const FileCall call : {FileCall::kWrite, FileCall::kSync}) {
    for (const FileFault::Kind kind :
         {FileFault::Kind::kFail, FileFault::Kind::kNoSpace,
          FileFault::Kind::kNoRights, FileFault::Kind::kShorten}) {
      for (int nth = 1; nth <= WriteCount(); ++nth) {
        befell += FailOneWrite({kind, call, nth, "/items/"});
        if (HasFailure()) return;
      }
    }
  }
  CountPoints(befell, 30);
}

// A write fails, and so does taking it back. Returns false if that has no such
// call.
bool FailOneRecovery(const FileFault& fault) {
  SCOPED_TRACE(Text(fault));
  FaultyCatalog catalog;
  EXPECT_OK(catalog.Open());
  for (int i = 0; i < 3; ++i) EXPECT_OK(catalog.Write());
  catalog.files().Inject({FileFault::Kind::kFail, FileCall::kSync, 1, ".log"});
  EXPECT_FALSE(catalog.Write().ok());
  catalog.files().InjectNothing();  // that one is not to count
  catalog.files().Inject(fault);
  const absl::Status failed = catalog.Write();
  const bool befell = catalog.files().befell();
  EXPECT_TRUE(befell || failed.ok()) << failed;
  ExpectGoesOn(catalog);
  return befell;
}

TEST_F(DiskFaultTest, AFailedRecoveryIsTriedAgain) {
  int befell = 0;
  for (const FileCall call :
       {FileCall::kOpen, FileCall::kCreate, FileCall::kWrite, FileCall::kSync,
        FileCall::kRename}) {
    for (int nth = 1; IsLong() || nth <= 12; ++nth) {
      if (!FailOneRecovery({FileFault::Kind::kFail, call, nth, "/items/"})) {
        break;
      }
      ++befell;
      if (HasFailure()) return;
    }
  }
  CountPoints(befell, 15);
}

TEST_F(DiskFaultTest, WithoutRightsWritesWaitAndReadsGoOn) {
  FaultyCatalog catalog;
  ASSERT_OK(catalog.Open());
  for (int i = 0; i < 3; ++i) ASSERT_OK(catalog.Write());
  // A write; then to take it back, again and again.
  for (const FileCall call :
       {FileCall::kSync, FileCall::kCreate, FileCall::kCreate}) {
    catalog.files().Inject(
        {FileFault::Kind::kNoRights, call, 1, catalog.path() + "/items/"});
    const absl::Status status = catalog.Write();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                 AllOf(HasSubstr(catalog.path() + "/items/"),
                                       HasSubstr("Permission denied"))));
    EXPECT_EQ(ReasonOf(status), kFilesNotAccessible);
    catalog.ExpectAcknowledged();
  }
  ExpectGoesOn(catalog);
}

// RocksDB would make a new database there, and delete what is left of this one.
TEST_F(DiskFaultTest, ADatabaseThatIsGoneIsNotMadeAnew) {
  for (const bool whole : {false, true}) {
    FaultyCatalog catalog;
    ASSERT_OK(catalog.Open());
    for (int i = 0; i < 3; ++i) ASSERT_OK(catalog.Write());
    for (const auto& entry :
         std::filesystem::directory_iterator(catalog.path() + "/items")) {
      if (whole) {
        std::filesystem::rename(entry.path(), catalog.path() + "/moved");
      } else {
        std::filesystem::remove(entry.path() / "CURRENT");
      }
    }
    catalog.files().Inject(
        {FileFault::Kind::kFail, FileCall::kSync, 1, ".log"});
    EXPECT_FALSE(catalog.Write().ok());
    catalog.files().InjectNothing();
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(catalog.Write(), StatusIs(absl::StatusCode::kDataLoss,
                                            HasSubstr("CURRENT is missing")));
    }
    // Reads go on.
    catalog.ExpectAcknowledged();
    // Nor does a restart take it for a new one.
    EXPECT_THAT(catalog.Open(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is missing")));
  }
}

// The log of the list of catalogs may have it, for the next start to find.
TEST_F(DiskFaultTest, ADeletionThatFailedTakesNoLaterWriteAlong) {
  FaultyCatalog catalog;
  ASSERT_OK(catalog.Open());
  ASSERT_OK(catalog.Write());
  catalog.files().Inject({FileFault::Kind::kFail, FileCall::kSync, 1,
                          catalog.path() + "/catalogs/"});
  EXPECT_FALSE(catalog.set().Delete("shop").ok());
  EXPECT_TRUE(catalog.files().befell());
  catalog.files().InjectNothing();
  ASSERT_OK(catalog.Write());
  catalog.ExpectAcknowledged();
  ASSERT_OK(catalog.Open());
  catalog.ExpectAcknowledged();
}

// Asks a function before each sync of a file, which may wait, or fail.
class WatchedFileSystem : public FaultyFileSystem {
 public:
  using Watch = std::function<rocksdb::IOStatus(const std::string& path)>;

  using FaultyFileSystem::FaultyFileSystem;
  // Before anything is open.
  void WatchSyncs(Watch watch) { watch_ = std::move(watch); }
  rocksdb::IOStatus NewWritableFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* result,
      rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus status =
        FaultyFileSystem::NewWritableFile(path, options, result, debug);
    if (status.ok() && watch_) {
      *result = std::make_unique<File>(std::move(*result), path, watch_);
    }
    return status;
  }

 private:
  class File : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path,
         Watch watch)
        : FSWritableFileOwnerWrapper(std::move(file)),
          path_(std::move(path)),
          watch_(std::move(watch)) {}
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
      const rocksdb::IOStatus status = watch_(path_);
      return status.ok() ? target()->Sync(options, debug) : status;
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                            rocksdb::IODebugContext* debug) override {
      return Sync(options, debug);
    }

   private:
    const std::string path_;
    const Watch watch_;
  };

  Watch watch_;
};

// As above, while the write is being synced: it is answered after the deletion.
TEST_F(DiskFaultTest, ADeletionThatFailsBesideAWriteDoesNotTakeItAlong) {
  for (const bool taken_back : {true, false}) {
    SCOPED_TRACE(taken_back);
    const ScratchDirectory directory;
    const std::string path = directory / "data";
    const auto files = std::make_shared<WatchedFileSystem>(path, /*seed=*/1);
    std::function<void()> beside;
    files->WatchSyncs([&](const std::string& file) {
      if (absl::StrContains(file, "/items/") && absl::EndsWith(file, ".log") &&
          beside != nullptr) {
        std::exchange(beside, nullptr)();
      }
      return rocksdb::IOStatus::OK();
    });
    CatalogSet::Options options;
    options.store.file_system = files;
    ASSERT_OK_AND_ASSIGN(auto set, CatalogSet::Open(path, options));
    ASSERT_OK_AND_ASSIGN(auto created,
                         set->Create("shop", SchemaOf(IndexKind::kFlat), {}));
    const auto write = [&](int i) {
      return created.catalog->Upsert(std::vector<Item>{ItemOf(i)}, "").status();
    };
    beside = [&] {
      const std::string list = path + "/catalogs/";
      files->Inject({FileFault::Kind::kFail, FileCall::kSync, 1, list});
      // On a thread of its own, as it would be beside a write.
      std::thread([&] { EXPECT_FALSE(set->Delete("shop").ok()); }).join();
      EXPECT_TRUE(files->befell());
      files->InjectNothing();
      if (taken_back) return;
      files->Inject({FileFault::Kind::kNoRights, FileCall::kCreate, 1, list});
    };
    const absl::Status status = write(0);
    EXPECT_EQ(beside, nullptr);
    if (taken_back) {
      EXPECT_OK(status);
    } else {
      EXPECT_TRUE(files->befell());
      EXPECT_EQ(ReasonOf(status), kFilesNotAccessible) << status;
      files->InjectNothing();
      EXPECT_FALSE(created.catalog->snapshot()->Find(ItemOf(0).id));
      ASSERT_OK_AND_ASSIGN(const auto stored,
                           StoredItems(*created.catalog, "", 10));
      EXPECT_TRUE(stored.empty());
      EXPECT_OK(write(1));
    }
    created.catalog = nullptr;
    set = nullptr;
    ASSERT_OK_AND_ASSIGN(set, CatalogSet::Open(path, options));
    ASSERT_OK_AND_ASSIGN(const auto shop, set->Get("shop"));
    EXPECT_EQ(shop->snapshot()->item_count(), 1);
    EXPECT_TRUE(shop->snapshot()->Find(ItemOf(taken_back ? 0 : 1).id));
  }
}

// The next start tries again to say which model is in use.
TEST_F(DiskFaultTest, WhatOnlySavesWorkDamagesNoCatalog) {
  const ScratchDirectory directory;
  const std::string path = directory / "data";
  const auto files = std::make_shared<FaultyFileSystem>(path, /*seed=*/1);
  CatalogSet::Options options;
  options.store.file_system = files;
  CatalogSchema schema = SchemaOf(IndexKind::kFlat);
  schema.key_fields[0].score_kind = ScoreKind::kBilinear;
  schema.key_fields[0].model = {"taste", 1};
  CatalogRecord record;
  {
    ASSERT_OK_AND_ASSIGN(const auto set, CatalogSet::Open(path, options));
    ASSERT_OK(set->models().Create("taste",
                                   {BilinearForm{{2, 2, {1, 2, 3, 4}}}}, {}));
    ASSERT_OK_AND_ASSIGN(const auto created, set->Create("shop", schema, {}));
    record = created.catalog->record();
  }
  {
    ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(path, options.store));
    ASSERT_OK_AND_ASSIGN(const auto shop, store->OpenCatalog(record));
    ASSERT_OK(shop->PutActiveModel("key", {"taste", 7}));
  }
  files->Inject({FileFault::Kind::kNoSpace, FileCall::kSync, 1, ".log"});
  ASSERT_OK_AND_ASSIGN(const auto set, CatalogSet::Open(path, options));
  EXPECT_TRUE(files->befell());
  files->InjectNothing();
  ASSERT_OK_AND_ASSIGN(const auto shop, set->Get("shop"));
  EXPECT_OK(shop->Upsert(std::vector<Item>{ItemOf(0)}, ""));
}

// A database on a disk that may fail.
class FaultyDatabase {
 public:
  explicit FaultyDatabase(WatchedFileSystem::Watch watch = {}) {
    files_->WatchSyncs(std::move(watch));
    Open();
  }

  Database& operator*() { return *database_; }
  Database* operator->() { return database_.get(); }
  void Open() {
    database_ = nullptr;
    auto opened =
        Database::Open(path_, Database::Mode::kCreateIfMissing, resources_);
    ASSERT_OK(opened);
    database_ = *std::move(opened);
  }
  absl::Status Write(const std::string& key,
                     std::optional<std::int64_t> sequence) {
    rocksdb::WriteBatch batch;
    batch.Put(key, "value");
    return database_->Write(&batch, sequence);
  }
  bool Has(const std::string& key) const {
    const auto value = database_->Get(key);
    EXPECT_OK(value);
    return value.ok() && value->has_value();
  }
  // Now, and after a restart.
  void ExpectKeys(const std::vector<std::string>& there,
                  const std::string& not_there) {
    for (int i = 0; i < 2; ++i) {
      for (const std::string& key : there) EXPECT_TRUE(Has(key)) << key;
      EXPECT_FALSE(Has(not_there)) << not_there;
      Open();
    }
  }
  void FailWrite(const std::string& key, std::optional<std::int64_t> sequence) {
    files_->Inject({FileFault::Kind::kFail, FileCall::kSync, 1, ".log"});
    EXPECT_FALSE(Write(key, sequence).ok());
    files_->InjectNothing();
  }
  std::string checkpoint_path() const { return directory_ / "checkpoint"; }
  const DatabaseResources& resources() const { return resources_; }
  const std::string& path() const { return path_; }
  std::string log_path() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.path().extension() == ".log") return entry.path();
    }
    return "";
  }

 private:
  const ScratchDirectory directory_;
  const std::string path_ = directory_ / "database";
  const std::shared_ptr<WatchedFileSystem> files_ =
      std::make_shared<WatchedFileSystem>(path_, /*seed=*/1);
  const DatabaseResources resources_ = DatabaseResources::Make(Files(files_));
  std::unique_ptr<Database> database_;
};

// What has no sequence, as text encoders, is taken back like what has.
TEST_F(DiskFaultTest, AFailedWriteWithoutSequenceIsTakenBack) {
  FaultyDatabase database;
  ASSERT_OK(database.Write("first", 1));
  database.FailWrite("failed", std::nullopt);
  EXPECT_OK(database->TakeBackFailed());
  ASSERT_OK(database.Write("last", 2));
  database.ExpectKeys({"first", "last"}, "failed");
}

// A flush that waits for the write that fails begins another log after it.
TEST_F(DiskFaultTest, AnEmptyLogDoesNotHideAWriteThatFailed) {
  FaultyDatabase database;
  ASSERT_OK(database.Write("first", 1));
  database.FailWrite("failed", 2);
  std::ofstream(database.path() + "/999999.log");
  ASSERT_OK(database.Write("last", 2));
  database.ExpectKeys({"first", "last"}, "failed");
}

// RocksDB ends the process where a checkpoint syncs the log that a write failed
// to sync.
TEST_F(DiskFaultTest, AWriteThatFailsBesideACheckpointEndsNothingElse) {
  Mutex mutex;
  CondVar changed;
  bool flushing = false;
  bool writing = false;
  // The table that becomes of the first write is there only after the sync of
  // the second one's log began, which takes longer and fails.
  FaultyDatabase database([&](const std::string& path) {
    {
      MutexLock lock(&mutex);
      if (absl::EndsWith(path, ".sst") && !flushing) {
        flushing = true;
        changed.NotifyAll();
        while (!writing) changed.Wait(&mutex);
      }
      if (!absl::EndsWith(path, ".log") || !flushing || writing) {
        return rocksdb::IOStatus::OK();
      }
      writing = true;
      changed.NotifyAll();
    }
    // In which the checkpoint comes to its own sync, if nothing keeps it.
    absl::SleepFor(absl::Milliseconds(100));
    return rocksdb::IOStatus::IOError("injected", path);
  });
  ASSERT_OK(database.Write("first", 1));
  absl::Status made;
  std::thread checkpoint(
      [&] { made = database->Checkpoint(database.checkpoint_path()); });
  {
    MutexLock lock(&mutex);
    while (!flushing) changed.Wait(&mutex);
  }
  EXPECT_FALSE(database.Write("failed", 2).ok());
  checkpoint.join();
  ASSERT_OK(database.Write("last", 2));
  database.ExpectKeys({"first", "last"}, "failed");
  // The checkpoint failed too, or is whole.
  EXPECT_EQ(std::filesystem::exists(database.checkpoint_path()), made.ok());
  if (!made.ok()) return;
  ASSERT_OK_AND_ASSIGN(
      const auto copy,
      Database::Open(database.checkpoint_path(), Database::Mode::kMustExist,
                     database.resources()));
  EXPECT_EQ(copy->sequence(), 1);
}

// What is damaged before the write that failed was acknowledged.
TEST_F(DiskFaultTest, ADamagedLogIsNotCut) {
  FaultyDatabase database;
  for (int i = 1; i <= 3; ++i) {
    ASSERT_OK(database.Write(absl::StrCat("key", i), i));
  }
  database.FailWrite("failed", 4);
  const std::string path = database.log_path();
  std::string log;
  {
    std::ifstream file(path, std::ios::binary);
    log.assign(std::istreambuf_iterator<char>(file), {});
  }
  log[20] = static_cast<char>(log[20] ^ 1);
  std::ofstream(path, std::ios::binary) << log;
  EXPECT_EQ(database->TakeBackFailed().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(database.Write("next", 4).code(), absl::StatusCode::kDataLoss);
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), log);
  // Reads go on.
  ASSERT_OK_AND_ASSIGN(const auto value, database->Get("key2"));
  EXPECT_TRUE(value.has_value());
}

TEST_F(DiskFaultTest, ReadsThatAreUnderWayPutARecoveryOff) {
  FaultyDatabase database;
  ASSERT_OK(database.Write("first", 1));
  database.FailWrite("failed", 2);
  Mutex mutex;
  CondVar changed;
  bool reading = false;
  bool go_on = false;
  std::thread reader([&] {
    EXPECT_OK(
        database->Scan("a", "z", [&](absl::string_view, absl::string_view) {
          MutexLock lock(&mutex);
          reading = true;
          changed.NotifyAll();
          while (!go_on) changed.Wait(&mutex);
          return true;
        }));
  });
  {
    MutexLock lock(&mutex);
    while (!reading) changed.Wait(&mutex);
  }
  EXPECT_EQ(database->TakeBackFailed().code(), absl::StatusCode::kUnavailable);
  // The next does not hold up other reads for the same one.
  const SteadyTime begin = SteadyNow();
  EXPECT_EQ(database.Write("next", 2).code(), absl::StatusCode::kUnavailable);
  EXPECT_LT(TimeSince(begin), absl::Milliseconds(900));
  EXPECT_OK(database->Get("first"));
  {
    MutexLock lock(&mutex);
    go_on = true;
    changed.NotifyAll();
  }
  reader.join();
  EXPECT_OK(database.Write("next", 2));
  ASSERT_OK_AND_ASSIGN(const auto value, database->Get("failed"));
  EXPECT_FALSE(value.has_value());
}

// Returns false if opening has no such call.
bool FailOneOpen(const FileFault& fault) {
  SCOPED_TRACE(Text(fault));
  FaultyCatalog catalog;
  EXPECT_OK(catalog.Open());
  for (int i = 0; i < 3; ++i) EXPECT_OK(catalog.Write());
  catalog.Close();
  catalog.files().Inject(fault);
  const absl::Status opened = catalog.Open();
  const bool befell = catalog.files().befell();
  EXPECT_TRUE(opened.ok() || befell) << opened;
  catalog.Close();
  catalog.files().InjectNothing();
  EXPECT_OK(catalog.Open());
  catalog.ExpectAcknowledged();
  EXPECT_OK(catalog.Write());
  return befell;
}

TEST_F(DiskFaultTest, AFailedStartLosesNothing) {
  int befell = 0;
  for (const FileCall call :
       {FileCall::kOpen, FileCall::kCreate, FileCall::kWrite, FileCall::kSync,
        FileCall::kRename, FileCall::kRemove}) {
    for (int nth = 1; IsLong() || nth <= 40;
         nth += IsLong() || nth < 8 ? 1 : 5) {
      if (!FailOneOpen({FileFault::Kind::kFail, call, nth, ""})) break;
      ++befell;
      if (HasFailure()) return;
    }
  }
  CountPoints(befell, 30);
}

constexpr FileCall kCalls[] = {FileCall::kOpen, FileCall::kCreate,
                               FileCall::kWrite, FileCall::kSync,
                               FileCall::kRename};
constexpr FileFault::Kind kKinds[] = {FileFault::Kind::kFail,
                                      FileFault::Kind::kNoSpace,
                                      FileFault::Kind::kShorten};

// Each second call, or under a sanitizer each sixth.
int Step() { return IsLong() ? 1 : kSanitized ? 6 : 2; }

// Runs `fail_one` with each fault of the files under a path, until the history
// has no such call. Returns how many there were.
int FailEach(const std::string& path_part, bool (*fail_one)(const FileFault&)) {
  int befell = 0;
  for (const FileCall call : kCalls) {
    for (const FileFault::Kind kind : kKinds) {
      // Nothing else can be done by half.
      if (kind == FileFault::Kind::kShorten && call != FileCall::kWrite) {
        continue;
      }
      for (int nth = 1; IsLong() || nth < 30; nth += Step()) {
        if (!fail_one({kind, call, nth, path_part})) break;
        ++befell;
        if (::testing::Test::HasFailure()) return befell;
      }
    }
  }
  return befell;
}

// A failure is the fault's, and says so.
void ExpectOf(const FileFault& fault, const absl::Status& status,
              FaultyCatalog& catalog) {
  EXPECT_TRUE(status.ok() || catalog.files().befell()) << status;
  // Nobody is told so who opens a file to read it.
  if (fault.kind == FileFault::Kind::kNoSpace &&
      fault.call != FileCall::kOpen && !status.ok()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  }
}

// Opening a database waits, while it is told to, until it is told not to.
class HoldingFileSystem : public FaultyFileSystem {
 public:
  using FaultyFileSystem::FaultyFileSystem;
  rocksdb::IOStatus NewSequentialFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSSequentialFile>* result,
      rocksdb::IODebugContext* debug) override {
    if (absl::EndsWith(path, "/CURRENT")) {
      MutexLock lock(&mutex_);
      is_waiting_ = is_holding_;
      changed_.NotifyAll();
      const SteadyTime give_up = SteadyAfter(absl::Seconds(10));
      while (is_holding_ && SteadyNow() < give_up) {
        changed_.WaitWithTimeout(&mutex_, TimeUntil(give_up));
      }
      is_holding_ = false;
    }
    return FaultyFileSystem::NewSequentialFile(path, options, result, debug);
  }
  void Hold() {
    MutexLock lock(&mutex_);
    is_holding_ = true;
  }
  void AwaitHeld() {
    MutexLock lock(&mutex_);
    while (!is_waiting_) changed_.Wait(&mutex_);
  }
  // False if nothing was held any more.
  bool LetGo() {
    MutexLock lock(&mutex_);
    changed_.NotifyAll();
    return std::exchange(is_holding_, false);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool is_holding_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_waiting_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST_F(DiskFaultTest, FiguresDoNotWaitForARecovery) {
  const ScratchDirectory directory;
  const std::string path = directory / "data";
  const auto files = std::make_shared<HoldingFileSystem>(path, /*seed=*/1);
  CatalogSet::Options options;
  options.store.file_system = files;
  ASSERT_OK_AND_ASSIGN(const auto set, CatalogSet::Open(path, options));
  ASSERT_OK_AND_ASSIGN(const auto created,
                       set->Create("shop", SchemaOf(IndexKind::kFlat), {}));
  LiveCatalog& shop = *created.catalog;
  const auto write = [&](int i) {
    return shop.Upsert(std::vector<Item>{ItemOf(i)}, "").status();
  };
  EXPECT_OK(write(0));
  EXPECT_GT(shop.store_figures().write_buffer_bytes, 0);
  files->Inject({.call = FileCall::kSync, .path_part = ".log"});
  EXPECT_FALSE(write(1).ok());
  files->InjectNothing();
  files->Hold();
  std::thread writer([&] { EXPECT_OK(write(2)); });
  files->AwaitHeld();
  EXPECT_EQ(shop.store_figures().write_buffer_bytes, 0);
  EXPECT_TRUE(files->LetGo());
  writer.join();
  EXPECT_GT(shop.store_figures().write_buffer_bytes, 0);
  EXPECT_TRUE(shop.snapshot()->Find("item102"));
}

// There is no memory where it looks for segments, which a catalog does last.
class NarrowFileSystem : public FaultyFileSystem {
 public:
  using FaultyFileSystem::FaultyFileSystem;
  rocksdb::IOStatus NewSequentialFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSSequentialFile>* result,
      rocksdb::IODebugContext* debug) override {
    if (absl::StrContains(path, "/segments/")) throw std::bad_alloc();
    return FaultyFileSystem::NewSequentialFile(path, options, result, debug);
  }
};

TEST_F(DiskFaultTest, ACatalogThatCouldNotBeOpenedLeavesNoFiles) {
  const ScratchDirectory directory;
  const std::string path = directory / "data";
  CatalogSet::Options options;
  options.store.file_system =
      std::make_shared<NarrowFileSystem>(path, /*seed=*/1);
  ASSERT_OK_AND_ASSIGN(const auto set, CatalogSet::Open(path, options));
  EXPECT_THAT(set->Create("shop", SchemaOf(IndexKind::kFlat), {}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("out of memory")));
  EXPECT_TRUE(std::filesystem::is_empty(path + "/items"));
}

TEST_F(DiskFaultTest, SegmentsThatCantBeReadAreNotThrownAway) {
  FaultyCatalog catalog(IndexKind::kIvf);
  ASSERT_OK(catalog.Open());
  for (int i = 0; i < 30; ++i) ASSERT_OK(catalog.Write());
  catalog.catalog().AwaitIndexes();
  ASSERT_OK(catalog.catalog().save_status());
  // The manifest, a training, a segment.
  for (const int nth : {1, 2, 3}) {
    const std::set<std::string> before = catalog.SegmentFileNames();
    EXPECT_EQ(before.size(), 3u);
    catalog.Close();
    catalog.files().Inject(
        {FileFault::Kind::kFail, FileCall::kOpen, nth, "/segments/"});
    ASSERT_OK(catalog.Open());
    EXPECT_TRUE(catalog.files().befell());
    EXPECT_FALSE(catalog.catalog().recovery().files_not_used.ok());
    catalog.files().InjectNothing();
    catalog.ExpectAcknowledged();
    catalog.catalog().AwaitIndexes();
    ASSERT_OK(catalog.catalog().save_status());
    // They were there when others were written, whose names are others; but a
    // training that was read, and is what was learned again, keeps its file.
    const std::set<std::string> after = catalog.SegmentFileNames();
    EXPECT_EQ(after.size(), 3u);
    for (const std::string& name : after) {
      if (absl::StartsWith(name, "training-")) continue;
      EXPECT_EQ(before.contains(name), name == "MANIFEST") << name;
    }
    catalog.Close();
    ASSERT_OK(catalog.Open());
    EXPECT_OK(catalog.catalog().recovery().files_not_used);
    EXPECT_EQ(catalog.catalog().recovery().segment_count, 1);
    catalog.ExpectAcknowledged();
  }
}

// Stores a catalog with keys_on_disk and an index; the next Open has no place
// for the files of its keys.
void StoreKeysWithoutRoom(FileFault::Kind kind, FaultyCatalog& catalog) {
  catalog.KeepKeysOnDisk();
  ASSERT_OK(catalog.Open());
  for (int i = 0; i < 30; ++i) ASSERT_OK(catalog.Write());
  catalog.catalog().AwaitIndexes();
  ASSERT_OK(catalog.catalog().save_status());
  ASSERT_GT(catalog.catalog().index_states()[0].disk_bytes, 0);
  catalog.Close();
  std::filesystem::remove_all(catalog.path() + "/keys");
  catalog.files().Inject({kind, FileCall::kCreate, 1, "/keys"});
}

TEST_F(DiskFaultTest, SegmentsAreReadThoughTheirKeysFindNoRoomOnTheDisk) {
  for (const auto kind :
       {FileFault::Kind::kNoSpace, FileFault::Kind::kNoRights}) {
    LiveCatalogOptions options;
    options.retry_time = absl::Milliseconds(1);
    FaultyCatalog catalog(IndexKind::kIvf, /*seed=*/1, options);
    StoreKeysWithoutRoom(kind, catalog);
    ASSERT_OK(catalog.Open());
    const Recovery& recovery = catalog.catalog().recovery();
    EXPECT_OK(recovery.files_not_used);
    EXPECT_EQ(recovery.segment_count, 1);
    EXPECT_EQ(recovery.keys_in_memory.code(),
              kind == FileFault::Kind::kNoSpace
                  ? absl::StatusCode::kResourceExhausted
                  : absl::StatusCode::kUnavailable)
        << recovery.keys_in_memory;
    EXPECT_EQ(catalog.SegmentFileNames().size(), 3u);
    catalog.ExpectAcknowledged();
    // The next build moves them.
    catalog.files().InjectNothing();
    catalog.catalog().AwaitIndexes();
    EXPECT_GT(catalog.catalog().index_states()[0].disk_bytes, 0);
    ASSERT_OK(catalog.Open());
    EXPECT_OK(catalog.catalog().recovery().keys_in_memory);
    EXPECT_EQ(catalog.catalog().recovery().segment_count, 1);
    catalog.ExpectAcknowledged();
  }
}

TEST_F(DiskFaultTest, SegmentsThatMemoryHasNoRoomForEitherAreNotThrownAway) {
  FaultyCatalog catalog(IndexKind::kIvf);
  StoreKeysWithoutRoom(FileFault::Kind::kNoSpace, catalog);
  const std::set<std::string> before = catalog.SegmentFileNames();
  catalog.LimitMemory(1);
  ASSERT_OK(catalog.Open());
  EXPECT_THAT(catalog.catalog().recovery().files_not_used,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("keys that can't go to files")));
  EXPECT_EQ(catalog.SegmentFileNames(), before);
  catalog.ExpectAcknowledged();
}

TEST_F(DiskFaultTest, DamagedSegmentsThatCantBeRemovedAreInNobodysWay) {
  FaultyCatalog catalog(IndexKind::kIvf);
  ASSERT_OK(catalog.Open());
  for (int i = 0; i < 30; ++i) ASSERT_OK(catalog.Write());
  catalog.catalog().AwaitIndexes();
  ASSERT_OK(catalog.catalog().save_status());
  catalog.Close();
  std::string manifest;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           catalog.path() + "/segments")) {
    if (entry.path().filename() == "MANIFEST") manifest = entry.path();
  }
  std::ifstream in(manifest, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::ofstream(manifest, std::ios::binary) << "damaged" << bytes;
  catalog.files().Inject(
      {FileFault::Kind::kFail, FileCall::kRemove, 1, "/segments/"});
  ASSERT_OK(catalog.Open());
  EXPECT_TRUE(catalog.files().befell());
  EXPECT_TRUE(absl::IsDataLoss(catalog.catalog().recovery().files_not_used));
  catalog.files().InjectNothing();
  EXPECT_OK(catalog.Write());
  catalog.ExpectAcknowledged();
  catalog.Close();
  // What comes back whole is of an older state.
  std::ofstream(manifest, std::ios::binary) << bytes;
  ASSERT_OK(catalog.Open());
  catalog.ExpectAcknowledged();
  // Once they are written anew, all is as ever.
  catalog.catalog().AwaitIndexes();
  EXPECT_OK(catalog.catalog().save_status());
  ASSERT_OK(catalog.Open());
  EXPECT_OK(catalog.catalog().recovery().files_not_used);
  catalog.ExpectAcknowledged();
}

// Whether it befell.
bool FailFirstSave(const FileFault& fault, FaultyCatalog& catalog) {
  EXPECT_OK(catalog.Open());
  for (int i = 0; i < 30; ++i) EXPECT_OK(catalog.Write());
  catalog.files().Inject(fault);
  catalog.catalog().AwaitIndexes();
  return catalog.files().befell();
}

bool FailOneSave(const FileFault& fault) {
  SCOPED_TRACE(Text(fault));
  FaultyCatalog catalog(IndexKind::kIvf);
  const bool befell = FailFirstSave(fault, catalog);
  ExpectOf(fault, catalog.catalog().save_status(), catalog);
  EXPECT_OK(catalog.catalog().merge_status());
  catalog.ExpectAcknowledged();
  catalog.files().InjectNothing();
  EXPECT_OK(catalog.Write());
  // What is there is used, or made again; then it is there.
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_OK(catalog.Open());
    EXPECT_OK(catalog.catalog().recovery().files_not_used);
    catalog.ExpectAcknowledged();
    catalog.catalog().AwaitIndexes();
    EXPECT_OK(catalog.catalog().save_status());
  }
  EXPECT_EQ(catalog.catalog().recovery().segment_count, 1);
  return befell;
}

TEST_F(DiskFaultTest, SegmentsThatCouldNotBeSavedAreMadeAgain) {
  CountPoints(FailEach("/segments/", FailOneSave), Short(15));
}

// The manifest of the first save may be there though it failed; the next save
// ends before it has one.
bool FailTwoSaves(const FileFault& fault) {
  SCOPED_TRACE(Text(fault));
  FaultyCatalog catalog(IndexKind::kIvf);
  const bool befell = FailFirstSave(fault, catalog);
  catalog.files().InjectNothing();
  catalog.files().Inject({FileFault::Kind::kFail, FileCall::kCreate, 1,
                          absl::StrCat("/MANIFEST", kTemporarySuffix)});
  EXPECT_OK(catalog.WantIndex(IndexKind::kLsh));
  catalog.catalog().AwaitIndexes();
  EXPECT_TRUE(catalog.files().befell());
  EXPECT_FALSE(catalog.catalog().save_status().ok());
  catalog.files().InjectNothing();
  EXPECT_OK(catalog.Open());
  EXPECT_OK(catalog.catalog().recovery().files_not_used);
  catalog.ExpectAcknowledged();
  return befell;
}

TEST_F(DiskFaultTest, FilesThatAManifestMayNameStay) {
  int befell = 0;
  for (int nth = 1; nth < 20 && !HasFailure(); ++nth) {
    if (!FailTwoSaves(
            {FileFault::Kind::kFail, FileCall::kSync, nth, "/segments/"})) {
      break;
    }
    ++befell;
  }
  CountPoints(befell, 5);
}

// RocksDB tries again, and takes what it then can for another fault.
TEST_F(DiskFaultTest, AFileThatCouldNotBeOpenedIsWhatAStartSays) {
  int befell = 0;
  for (int nth = 1; nth < 50; ++nth) {
    SCOPED_TRACE(nth);
    FaultyCatalog catalog;
    ASSERT_OK(catalog.Open());
    ASSERT_OK(catalog.Write());
    catalog.Close();
    catalog.files().Inject(
        {FileFault::Kind::kFail, FileCall::kOpen, nth, "/CURRENT"});
    const absl::Status status = catalog.Open();
    if (!catalog.files().befell()) break;
    ++befell;
    EXPECT_TRUE(status.ok() ||
                absl::StrContains(status.message(), kInjectedError))
        << status;
    catalog.files().InjectNothing();
    ASSERT_OK(catalog.Open());
    catalog.ExpectAcknowledged();
  }
  CountPoints(befell, 4);
}

// One whose files serve nothing any more, with a log that is about to grow as
// long as may be: the writes that make it so are still to come.
constexpr int kLoggedChanges = 40;
std::unique_ptr<FaultyCatalog> WithUselessFiles(absl::Duration retry_time) {
  LiveCatalogOptions options;
  options.max_logged_changes = kLoggedChanges;
  options.retry_time = retry_time;
  auto catalog =
      std::make_unique<FaultyCatalog>(IndexKind::kIvf, /*seed=*/1, options);
  EXPECT_OK(catalog->Open());
  for (int i = 0; i < 30; ++i) EXPECT_OK(catalog->Write());
  catalog->catalog().AwaitIndexes();
  EXPECT_OK(catalog->WantIndex(IndexKind::kFlat));
  catalog->catalog().AwaitIndexes();
  EXPECT_FALSE(catalog->SegmentFileNames().empty());
  return catalog;
}

TEST_F(DiskFaultTest, NoWriteWaitsForUselessFilesToGo) {
  const auto catalog = WithUselessFiles(absl::Seconds(5));
  catalog->files().Inject(
      {FileFault::Kind::kHold, FileCall::kRemove, 1, "/segments/"});
  std::atomic<bool> written = false;
  std::atomic<bool> released = false;
  std::thread releasing([&] {
    // Else a write that waits would never end.
    const SteadyTime give_up = SteadyAfter(absl::Seconds(20));
    while (!written && SteadyNow() < give_up) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_TRUE(written);
    released = true;
    catalog->files().InjectNothing();
  });
  while (!catalog->files().befell() && !released) EXPECT_OK(catalog->Write());
  EXPECT_OK(catalog->Write());
  written = true;
  releasing.join();
  catalog->catalog().AwaitIndexes();
  EXPECT_OK(catalog->catalog().save_status());
  EXPECT_TRUE(catalog->SegmentFileNames().empty());
  EXPECT_OK(catalog->Open());
  catalog->ExpectAcknowledged();
}

TEST_F(DiskFaultTest, UselessFilesThatStayAreNotRemovedByEachWrite) {
  for (const absl::Duration retry_time :
       {absl::Hours(1), absl::Milliseconds(1)}) {
    const auto catalog = WithUselessFiles(retry_time);
    catalog->files().Inject(
        {FileFault::Kind::kFail, FileCall::kRemove, 1, "/segments/"});
    for (int i = 0; i < kLoggedChanges; ++i) EXPECT_OK(catalog->Write());
    catalog->catalog().AwaitIndexes();
    EXPECT_TRUE(catalog->files().befell());
    catalog->files().InjectNothing();
    if (retry_time == absl::Hours(1)) {
      EXPECT_OK(catalog->Write());
      catalog->catalog().AwaitIndexes();
      EXPECT_FALSE(catalog->catalog().save_status().ok());
      continue;
    }
    // By itself.
    const SteadyTime give_up = SteadyAfter(absl::Minutes(1));
    while (!catalog->catalog().save_status().ok() && SteadyNow() < give_up) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_TRUE(catalog->SegmentFileNames().empty());
    EXPECT_OK(catalog->Open());
    catalog->ExpectAcknowledged();
  }
}

bool FailOneSnapshot(const FileFault& fault) {
  SCOPED_TRACE(Text(fault));
  FaultyCatalog catalog;
  EXPECT_OK(catalog.Open());
  for (int i = 0; i < 3; ++i) EXPECT_OK(catalog.Write());
  catalog.files().Inject(fault);
  LongWork work;
  const absl::Status status =
      catalog.set().CreateSnapshot("shop", "first", work).status();
  const bool befell = catalog.files().befell();
  ExpectOf(fault, status, catalog);
  catalog.files().InjectNothing();
  const auto list = catalog.set().snapshots().List("shop");
  EXPECT_OK(list);
  if (list.ok()) {
    EXPECT_EQ(list->manifests.size(), status.ok() ? 1u : 0u);
  }
  catalog.ExpectWholeSnapshots();
  EXPECT_OK(catalog.Write());
  LongWork again;
  EXPECT_OK(catalog.set().CreateSnapshot("shop", "second", again));
  EXPECT_OK(catalog.Open());
  catalog.ExpectAcknowledged();
  catalog.ExpectWholeSnapshots();
  return befell;
}

TEST_F(DiskFaultTest, ASnapshotThatCouldNotBeMadeIsNotThere) {
  CountPoints(FailEach("/snapshots/", FailOneSnapshot), Short(20));
}

// What RocksDB does not get over by itself is not left to the next write.
TEST_F(DiskFaultTest, ASnapshotThatFailedIsNotTheEndOfWrites) {
  int befell = 0;
  for (const char* const path_part : {".log", ".sst", "/MANIFEST-"}) {
    befell += FailOneSnapshot(
        {FileFault::Kind::kFail, FileCall::kSync, 1, path_part});
  }
  EXPECT_EQ(befell, 3);
  CountPoints(befell, 3);
}

absl::Status AddModel(FaultyCatalog& catalog) {
  return catalog.set()
      .models()
      .Create("model", {BilinearForm{{1, 2, {1, 2}}}}, {})
      .status();
}

// A snapshot and a model are the first of their directories, whose sync may be
// the call that fails. False if there is no such call.
bool FailOneFirst(int nth, std::uint64_t seed) {
  SCOPED_TRACE(absl::StrCat("sync ", nth, ", seed ", seed));
  FaultyCatalog catalog(IndexKind::kFlat, seed);
  EXPECT_OK(catalog.Open());
  EXPECT_OK(catalog.Write());
  catalog.files().Inject({FileFault::Kind::kFail, FileCall::kSync, nth, ""});
  LongWork work;
  catalog.set().CreateSnapshot("shop", "first", work).status().IgnoreError();
  AddModel(catalog).IgnoreError();
  const bool befell = catalog.files().befell();
  catalog.files().InjectNothing();
  EXPECT_OK(catalog.set().CreateSnapshot("shop", "second", work));
  EXPECT_OK(AddModel(catalog));
  EXPECT_OK(catalog.OpenAfterCut());
  catalog.ExpectAcknowledged();
  catalog.ExpectWholeSnapshots();
  EXPECT_OK(catalog.set().snapshots().Get({"shop", "second"}));
  EXPECT_OK(catalog.set().models().Get("model", std::nullopt));
  return befell;
}

// The same of a first start.
bool FailOneFirstStart(int nth, std::uint64_t seed) {
  SCOPED_TRACE(absl::StrCat("sync ", nth, ", seed ", seed));
  FaultyCatalog catalog(IndexKind::kFlat, seed);
  catalog.files().Inject({FileFault::Kind::kFail, FileCall::kSync, nth, ""});
  catalog.Open().IgnoreError();
  catalog.Close();
  const bool befell = catalog.files().befell();
  catalog.files().InjectNothing();
  EXPECT_OK(catalog.Open());
  EXPECT_OK(catalog.Write());
  EXPECT_OK(catalog.OpenAfterCut());
  catalog.ExpectAcknowledged();
  return befell;
}

// With each of so many seeds. Returns how many calls there are.
int FailEachSync(bool (*fail_one)(int nth, std::uint64_t seed),
                 std::uint64_t seed_count) {
  int nth = 1;
  while (fail_one(nth, /*seed=*/1) && !::testing::Test::HasFailure()) {
    for (std::uint64_t seed = 2; seed <= seed_count; ++seed) {
      fail_one(nth, seed);
    }
    ++nth;
  }
  return nth - 1;
}

TEST_F(DiskFaultTest, AnUnsyncedDirectoryIsNotTakenForSynced) {
  CountPoints(FailEachSync(FailOneFirst, 1), 20);
}

TEST_F(DiskFaultTest, WhatAFirstStartCouldNotSyncTheNextOneDoes) {
  CountPoints(FailEachSync(FailOneFirstStart, 3), 10);
}

bool FailOneRestore(const FileFault& fault) {
  SCOPED_TRACE(Text(fault));
  FaultyCatalog catalog;
  EXPECT_OK(catalog.Open());
  for (int i = 0; i < 3; ++i) EXPECT_OK(catalog.Write());
  LongWork work;
  EXPECT_OK(catalog.set().CreateSnapshot("shop", "first", work));
  catalog.files().Inject(fault);
  const absl::Status status =
      catalog.set().RestoreSnapshot({"shop", "first"}, "old", work).status();
  const bool befell = catalog.files().befell();
  ExpectOf(fault, status, catalog);
  EXPECT_EQ(catalog.set().Get("old").ok(), status.ok());
  catalog.files().InjectNothing();
  EXPECT_OK(catalog.Write());
  catalog.ExpectAcknowledged();
  if (!status.ok()) {
    EXPECT_OK(catalog.set().RestoreSnapshot({"shop", "first"}, "old", work));
  }
  EXPECT_OK(catalog.Open());
  catalog.ExpectAcknowledged();
  const auto restored = catalog.set().Get("old");
  EXPECT_OK(restored);
  if (restored.ok()) {
    EXPECT_EQ((*restored)->snapshot()->item_count(), 3);
  }
  return befell;
}

TEST_F(DiskFaultTest, ARestoreThatFailedChangesNothing) {
  CountPoints(FailEach("/items/", FailOneRestore), Short(25));
}

}  // namespace
}  // namespace attendant
