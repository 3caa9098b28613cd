#include "core/storage/snapshots/snapshot_files.h"

#include <gmock/gmock.h>
#include <rocksdb/file_system.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/core/storage/test_store.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Refuses to remove directories whose path ends in a given suffix.
class StayingFileSystem : public rocksdb::FileSystemWrapper {
 public:
  explicit StayingFileSystem(std::string staying)
      : FileSystemWrapper(rocksdb::FileSystem::Default()),
        staying_(std::move(staying)) {}
  const char* Name() const override { return "StayingFileSystem"; }
  rocksdb::IOStatus DeleteDir(const std::string& path,
                              const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override {
    if (absl::EndsWith(path, staying_)) {
      return rocksdb::IOStatus::IOError("injected", path);
    }
    return target()->DeleteDir(path, options, debug);
  }

 private:
  const std::string staying_;
};

// Counts the snapshot manifests that are opened.
class ManifestCounter : public rocksdb::FileSystemWrapper {
 public:
  ManifestCounter() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "ManifestCounter"; }
  rocksdb::IOStatus NewSequentialFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSSequentialFile>* file,
      rocksdb::IODebugContext* debug) override {
    if (absl::EndsWith(path, absl::StrCat("/", kSnapshotManifest))) ++count;
    return target()->NewSequentialFile(path, options, file, debug);
  }

  int count = 0;
};

class SnapshotFilesTest : public ::testing::Test {
 protected:
  void Open(const StoreOptions& options = {}) {
    ASSERT_OK_AND_ASSIGN(store_, Store::Open(directory_ / "data", options));
    ASSERT_OK(store_->Put(TestRecord()));
    ASSERT_OK_AND_ASSIGN(catalog_, store_->OpenCatalog(TestRecord()));
  }
  void Close() {
    catalog_ = nullptr;
    store_ = nullptr;
  }
  absl::Status Take(const std::string& name) {
    LongWork work;
    return store_->snapshots()
        .Create(
            TestRecord(), {}, name, absl::FromUnixSeconds(1700000000),
            [&](const std::string& directory, CatalogRecord&) {
              return catalog_->Checkpoint(directory);
            },
            work)
        .status();
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const auto list = store_->snapshots().List("");
    EXPECT_OK(list);
    if (!list.ok()) return names;
    EXPECT_TRUE(list->damages.empty());
    for (const SnapshotManifest& manifest : list->manifests) {
      names.push_back(manifest.name);
    }
    return names;
  }

  ScratchDirectory directory_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<CatalogStore> catalog_;
};

TEST_F(SnapshotFilesTest, ANameThatNobodyChoseIsFree) {
  Open();
  ASSERT_OK(WriteItems(*catalog_, 0, 5, 7));
  for (int i = 0; i < 3; ++i) ASSERT_OK(Take(""));
  const std::string first = "20231114-221320-7";
  EXPECT_THAT(Names(), ElementsAre(first, first + "-2", first + "-3"));
  ASSERT_OK(store_->snapshots().Remove({"shop", first}));
  ASSERT_OK(Take(""));
  EXPECT_THAT(Names(), ElementsAre(first, first + "-2", first + "-3"));
  // A name given by the caller is not made unique.
  EXPECT_THAT(Take(first),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(first)));
}

TEST_F(SnapshotFilesTest, WhatCanNotBeRemovedIsInNobodysWay) {
  Open();
  ASSERT_OK(WriteItems(*catalog_, 0, 5, 1));
  Close();
  const std::string partial = directory_ / "data/snapshots/.partial/";
  for (const char* const name : {"1/database", "2/database", "some/thing"}) {
    std::filesystem::create_directories(partial + name);
  }
  StoreOptions options;
  options.file_system = std::make_shared<StayingFileSystem>("/database");
  Open(options);
  EXPECT_OK(Take("first"));
  EXPECT_OK(store_->snapshots().Remove({"shop", "first"}));
  EXPECT_OK(Take("second"));
  EXPECT_THAT(Names(), ElementsAre("second"));
}

TEST_F(SnapshotFilesTest, AFileAmongTheDirectoriesIsInNobodysWay) {
  Open();
  ASSERT_OK(WriteItems(*catalog_, 0, 5, 1));
  ASSERT_OK(Take("first"));
  std::ofstream(directory_ / "data/snapshots/notes") << "somebody's";
  EXPECT_THAT(Names(), ElementsAre("first"));
  EXPECT_THAT(
      store_->snapshots().List("notes"),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("Not a directory")));
}

TEST_F(SnapshotFilesTest, APageReadsItsOwnManifests) {
  const auto manifests = std::make_shared<ManifestCounter>();
  StoreOptions options;
  options.file_system = manifests;
  Open(options);
  ASSERT_OK(WriteItems(*catalog_, 0, 5, 1));
  for (const char* const name : {"a", "b", "c", "d", "e"})
    ASSERT_OK(Take(name));
  std::filesystem::remove(directory_ / "data/snapshots/shop/d/MANIFEST");
  const auto list = [&](const SnapshotPage& page, const Interrupt& interrupt) {
    manifests->count = 0;
    return store_->snapshots().List("", page, interrupt);
  };
  const auto names = [](const SnapshotList& listed) {
    std::vector<std::string> of;
    for (const SnapshotManifest& manifest : listed.manifests) {
      of.push_back(manifest.name);
    }
    return of;
  };
  // The first page reports all damages.
  SnapshotPage page;
  page.limit = 2;
  ASSERT_OK_AND_ASSIGN(SnapshotList listed, list(page, Interrupt()));
  EXPECT_THAT(names(listed), ElementsAre("a", "b"));
  EXPECT_EQ(listed.damages.size(), 1u);
  EXPECT_EQ(manifests->count, 5);
  page.after = {"shop", "a"};
  ASSERT_OK_AND_ASSIGN(listed, list(page, Interrupt()));
  EXPECT_THAT(names(listed), ElementsAre("b", "c"));
  EXPECT_EQ(manifests->count, 2);
  page.after = {"shop", "c"};
  ASSERT_OK_AND_ASSIGN(listed, list(page, Interrupt()));
  EXPECT_THAT(names(listed), ElementsAre("e"));
  // Manifests of catalogs that were not asked for are not read.
  page.holds = [](absl::string_view catalog) { return catalog != "shop"; };
  page.after = std::nullopt;
  ASSERT_OK_AND_ASSIGN(listed, list(page, Interrupt()));
  EXPECT_THAT(names(listed), ElementsAre());
  EXPECT_EQ(manifests->count, 0);
  page.holds = nullptr;
  Interrupt expired;
  expired.deadline = SteadyTime::min();
  EXPECT_THAT(list(page, expired),
              StatusIs(absl::StatusCode::kDeadlineExceeded, testing::_));
  EXPECT_EQ(manifests->count, 0);
}

}  // namespace
}  // namespace attendant
