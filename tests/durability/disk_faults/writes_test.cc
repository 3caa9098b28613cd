// Failing writes, and their rollback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/catalog/live/catalog_set.h"
#include "tests/durability/disk_faults/fixture.h"
#include "tests/durability/disk_faults/watched_file_system.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

int WriteCount() { return IsLong() ? 16 : 8; }

// Checks both after the disk is well and after a restart.
void ExpectGoesOn(FaultyCatalog& catalog) {
  catalog.ExpectAcknowledged();
  catalog.files().InjectNothing();
  EXPECT_OK(catalog.Write());
  catalog.ExpectAcknowledged();
  EXPECT_OK(catalog.Open());
  catalog.ExpectAcknowledged();
  EXPECT_OK(catalog.Write());
}

// Returns false if the history makes no such call.
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
  // Marking a write as acknowledged may fail: the next mark makes up for it.
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

// Fails a write and its rollback. Returns false if the rollback makes no such
// call.
bool FailOneRecovery(const FileFault& fault) {
  SCOPED_TRACE(Text(fault));
  FaultyCatalog catalog;
  EXPECT_OK(catalog.Open());
  for (int i = 0; i < 3; ++i) EXPECT_OK(catalog.Write());
  catalog.files().Inject({FileFault::Kind::kFail, FileCall::kSync, 1, ".log"});
  EXPECT_FALSE(catalog.Write().ok());
  catalog.files().InjectNothing();  // that fault does not count
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
  // Fails a write, then its rollback several times.
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

// RocksDB would create a new database there and delete the remains of this one.
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
    // Reads still work.
    catalog.ExpectAcknowledged();
    // A restart does not take it for a new catalog either.
    EXPECT_THAT(catalog.Open(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is missing")));
  }
}

// The log of the catalog list may contain the deletion, for the next start to
// find.
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
      // Deletes on a separate thread, as happens during a write.
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

// Blocks the opening of databases while told to.
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
  // Returns false if nothing was blocked any more.
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

}  // namespace
}  // namespace attendant
