// Disk faults while segment files are read, saved and removed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/catalog/live/catalog_set.h"
#include "core/storage/files/files.h"
#include "tests/durability/disk_faults/fixture.h"
#include "tests/durability/flags.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

TEST_F(DiskFaultTest, SegmentsThatCantBeReadAreNotThrownAway) {
  FaultyCatalog catalog(IndexKind::kIvf);
  ASSERT_OK(catalog.Open());
  for (int i = 0; i < 30; ++i) ASSERT_OK(catalog.Write());
  catalog.catalog().AwaitIndexes();
  ASSERT_OK(catalog.catalog().save_status());
  // The calls are on the manifest, a training and a segment.
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
    // The old files existed when the new ones were written, so names differ;
    // but a training that was read and learned again unchanged keeps its file.
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

// Stores a catalog with keys_on_disk and an index; the next Open has no room
// for the key files.
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
    // The next build moves the keys.
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
  // The manifest that returns is intact but describes an older state.
  std::ofstream(manifest, std::ios::binary) << bytes;
  ASSERT_OK(catalog.Open());
  catalog.ExpectAcknowledged();
  // Once the files are rewritten, everything is normal again.
  catalog.catalog().AwaitIndexes();
  EXPECT_OK(catalog.catalog().save_status());
  ASSERT_OK(catalog.Open());
  EXPECT_OK(catalog.catalog().recovery().files_not_used);
  catalog.ExpectAcknowledged();
}

// Returns whether the fault occurred.
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
  // Existing files are used or made again; afterwards they exist.
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

// The first save's manifest may exist although that save failed; the next save
// ends before it writes one.
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

// Returns a catalog whose files are no longer useful and whose log is about to
// reach its maximum length; the writes that do that are still to come.
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
    // Without this limit, a write that waits would never end.
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
    // The save succeeds without a further write.
    const SteadyTime give_up = SteadyAfter(absl::Minutes(1));
    while (!catalog->catalog().save_status().ok() && SteadyNow() < give_up) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_TRUE(catalog->SegmentFileNames().empty());
    EXPECT_OK(catalog->Open());
    catalog->ExpectAcknowledged();
  }
}

}  // namespace
}  // namespace attendant
