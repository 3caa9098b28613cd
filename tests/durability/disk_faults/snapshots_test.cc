// Disk faults while snapshots are made and restored.
#include <gtest/gtest.h>

#include "tests/durability/disk_faults/fixture.h"
#include "tests/durability/flags.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

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

// Errors that RocksDB does not recover from by itself must be cleared before
// the next write.
TEST_F(DiskFaultTest, ASnapshotThatFailedIsNotTheEndOfWrites) {
  int befell = 0;
  for (const char* const path_part : {".log", ".sst", "/MANIFEST-"}) {
    befell += FailOneSnapshot(
        {FileFault::Kind::kFail, FileCall::kSync, 1, path_part});
  }
  EXPECT_EQ(befell, 3);
  CountPoints(befell, 3);
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
