// Disk faults during a start: a catalog that fails to open, and files made
// while opening.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/catalog/live/catalog_set.h"
#include "tests/durability/disk_faults/fixture.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// Returns false if opening makes no such call.
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

// RocksDB retries, and reports what it can then open as a different fault.
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

// The next start retries, to report which model is in use.
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

// Runs out of memory while listing segments, the last step of opening a
// catalog.
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

}  // namespace
}  // namespace attendant
