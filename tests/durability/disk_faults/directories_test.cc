// The sync of a directory fails for its first entry; later the power is cut.
#include <gtest/gtest.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "tests/durability/disk_faults/fixture.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

absl::Status AddModel(FaultyCatalog& catalog) {
  return catalog.set()
      .models()
      .Create("model", {BilinearForm{{1, 2, {1, 2}}}}, {})
      .status();
}

// Creates a snapshot and a model, each the first entry of its directory, with
// the `nth` sync failing. Returns false if there is no such call.
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

// Does the same for a first start.
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

// Runs each sync with `seed_count` seeds. Returns the number of syncs.
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

}  // namespace
}  // namespace attendant
