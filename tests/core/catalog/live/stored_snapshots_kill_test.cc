// Kills a process while it makes, restores, imports or deletes a snapshot, at
// each rename and each write of a log. A snapshot or catalog is then there as a
// whole or not at all, and nothing else is left.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "core/catalog/live/catalog_set.h"
#include "core/storage/snapshots/snapshot_files.h"
#include "core/storage/snapshots/snapshot_stream.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

constexpr int kItemCount = 20;

std::vector<Item> MakeItems() {
  std::vector<Item> items;
  for (int i = 0; i < kItemCount; ++i) {
    items.push_back(
        MakeItem(absl::StrCat("item-", i), {static_cast<float>(i), 1}));
  }
  return items;
}

class StoredSnapshotsKillTest : public ::testing::Test {
 protected:
  using Operation = std::function<absl::Status(CatalogSet&)>;

  // Makes a catalog "shop", a snapshot "s1" of it, and the snapshot's bytes.
  void SetUp() override {
    auto set = Open();
    ASSERT_OK_AND_ASSIGN(const auto created,
                         set->Create("shop", OneFieldSchema(2), {}));
    ASSERT_OK(created.catalog->Upsert(MakeItems(), ""));
    LongWork work;
    ASSERT_OK(set->CreateSnapshot("shop", "s1", work));
    ASSERT_OK_AND_ASSIGN(auto lease, set->snapshots().Open({"shop", "s1"}));
    SnapshotExport stream(&set->snapshots(), std::move(lease));
    while (true) {
      ASSERT_OK_AND_ASSIGN(const std::string bytes, stream.Next(1 << 20));
      if (bytes.empty()) break;
      exported_ += bytes;
    }
  }
  std::unique_ptr<CatalogSet> Open() {
    auto set = CatalogSet::Open(directory_.path(), {});
    EXPECT_OK(set);
    return *std::move(set);
  }

  // Runs the operation in a process that dies when it reaches the fail point
  // for the count-th time. Returns false if the process finished.
  bool KilledIn(const Operation& operation, const std::string& fail_point,
                int count) {
    const pid_t child = fork();
    if (child == 0) {
      auto set = CatalogSet::Open(directory_.path(), {});
      if (!set.ok()) _exit(2);
      const std::string spec = absl::StrCat(fail_point, ":", count, "=kill");
      if (!ArmFailPoint(spec).ok()) _exit(3);
      _exit(operation(**set).ok() ? 0 : 4);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
      EXPECT_EQ(WTERMSIG(status), SIGKILL);
      return true;
    }
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return false;
  }

  // Checks that everything present is whole, then removes all but the shop.
  void CheckAndTidy() {
    auto set = Open();
    EXPECT_FALSE(fs::exists(directory_ / "snapshots/.partial"));
    EXPECT_TRUE(set->damages().empty());
    const auto catalogs = set->List("", 10);
    EXPECT_EQ(std::distance(fs::directory_iterator(directory_ / "items"), {}),
              static_cast<std::ptrdiff_t>(catalogs.size()));
    for (const auto& catalog : catalogs) {
      EXPECT_EQ(StoredItems(*catalog, "", 100)->size(),
                static_cast<std::size_t>(kItemCount));
    }
    const auto list = set->snapshots().List("shop");
    ASSERT_OK(list);
    EXPECT_TRUE(list->damages.empty());
    for (const SnapshotManifest& manifest : list->manifests) {
      LongWork work;
      const auto lease = set->snapshots().Open({"shop", manifest.name});
      ASSERT_OK(lease);
      EXPECT_OK(set->snapshots().Verify(**lease, work));
      EXPECT_EQ(manifest.item_count, kItemCount);
    }
    for (const SnapshotManifest& manifest : list->manifests) {
      if (manifest.name == "s1") continue;
      EXPECT_OK(set->snapshots().Remove({"shop", manifest.name}));
    }
    if (set->Get("old").ok()) {
      EXPECT_OK(set->Delete("old"));
    }
  }

  // Kills the operation in turn at every step-th time that it reaches a fail
  // point.
  void KillEverywhere(const Operation& operation, int step = 1,
                      const std::function<void()>& prepare = nullptr) {
    for (const char* point : {"file.before_rename", "file.after_rename",
                              "log.before_sync", "log.after_sync"}) {
      for (int count = 1;; count += step) {
        SCOPED_TRACE(absl::StrCat(point, ":", count));
        if (prepare != nullptr) prepare();
        const bool killed = KilledIn(operation, point, count);
        if (killed) ++kill_count_;
        CheckAndTidy();
        if (!killed || HasFailure()) break;
      }
    }
  }

  ScratchDirectory directory_;
  std::string exported_;
  int kill_count_ = 0;
};

TEST_F(StoredSnapshotsKillTest, WhileOneIsMade) {
  KillEverywhere([](CatalogSet& set) {
    LongWork work;
    return set.CreateSnapshot("shop", "s2", work).status();
  });
  // Before and after each of the record, the manifest and the directory.
  EXPECT_GE(kill_count_, 6);
}

TEST_F(StoredSnapshotsKillTest, WhileOneIsRestored) {
  KillEverywhere([](CatalogSet& set) {
    LongWork work;
    return set.RestoreSnapshot({"shop", "s1"}, "old", work).status();
  });
  // At least CURRENT and a manifest are copied, and the uid and the record
  // written.
  EXPECT_GE(kill_count_, 8);
}

TEST_F(StoredSnapshotsKillTest, WhileOneComesIn) {
  KillEverywhere(
      [this](CatalogSet& set) {
        SnapshotImport stream(&set.snapshots());
        ATTENDANT_RETURN_IF_ERROR(stream.Name("", "s2"));
        ATTENDANT_RETURN_IF_ERROR(stream.Append(exported_));
        LongWork work;
        return stream.Finish(work).status();
      },
      /*step=*/3);
  EXPECT_GE(kill_count_, 4);
}

TEST_F(StoredSnapshotsKillTest, WhileOneIsDeleted) {
  KillEverywhere(
      [](CatalogSet& set) {
        return set.snapshots().Remove({"shop", "s2"});
      },
      /*step=*/1,
      [this] {
        LongWork work;
        ASSERT_OK(Open()->CreateSnapshot("shop", "s2", work));
      });
  EXPECT_EQ(kill_count_, 2);
}

}  // namespace
}  // namespace attendant
