#include "tests/durability/disk_faults/fixture.h"

#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/catalog/live/catalog_set.h"
#include "core/storage/files/files.h"
#include "tests/durability/flags.h"
#include "tests/support/sanitized.h"
#include "tests/support/status_matchers.h"
#include "tests/support/stored_items.h"

namespace attendant {

bool IsLong() { return Flag("points", 0) > 0; }

int DiskFaultTest::point_count_ = 0;

void DiskFaultTest::TearDownTestSuite() {
  RecordProperty("points", point_count_);
  std::printf("%d points\n", point_count_);
  const auto& all = *::testing::UnitTest::GetInstance();
  if (all.test_to_run_count() == all.total_test_count()) {
    EXPECT_GE(point_count_, Flag("points", Short(200)));
  }
}

void DiskFaultTest::CountPoints(int count, int least) {
  EXPECT_GE(count, least);
  point_count_ += count;
}

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

absl::Status FaultyCatalog::Open() {
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

absl::Status FaultyCatalog::OpenAfterCut() {
  files_->CutPowerAt(1, /*zeros=*/false);
  EXPECT_OK(Files(files_).ReplaceFile(path() + "/after", "the cut"));
  Close();
  files_->RestoreAfterCut();
  return Open();
}

absl::Status FaultyCatalog::Write() {
  const Item item = ItemOf(next_++);
  const absl::Status status =
      catalog_->Upsert(std::vector<Item>{item}, "").status();
  (status.ok() ? acknowledged_ : failed_).push_back(item);
  return status;
}

absl::Status FaultyCatalog::WantIndex(IndexKind kind) {
  return catalog_->UpdateSchema(SchemaOf(kind), {NamedModel()},
                                [] { return absl::OkStatus(); });
}

void FaultyCatalog::ExpectAcknowledged() {
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
  // The database holds the same items.
  ASSERT_OK_AND_ASSIGN(const auto stored, StoredItems(*catalog_, "", 1000));
  ASSERT_EQ(stored.size(), acknowledged_.size());
  for (std::size_t i = 0; i < stored.size(); ++i) {
    EXPECT_EQ(static_cast<const Item&>(stored[i]), acknowledged_[i]);
  }
}

std::set<std::string> FaultyCatalog::SegmentFileNames() const {
  std::set<std::string> names;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(path() + "/segments")) {
    if (entry.is_regular_file()) names.insert(entry.path().filename());
  }
  return names;
}

void FaultyCatalog::ExpectWholeSnapshots() {
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

std::string Text(const FileFault& fault) {
  return absl::StrCat("kind ", static_cast<int>(fault.kind), ", call ",
                      static_cast<int>(fault.call), " number ", fault.nth);
}

namespace {

constexpr FileCall kCalls[] = {FileCall::kOpen, FileCall::kCreate,
                               FileCall::kWrite, FileCall::kSync,
                               FileCall::kRename};
constexpr FileFault::Kind kKinds[] = {FileFault::Kind::kFail,
                                      FileFault::Kind::kNoSpace,
                                      FileFault::Kind::kShorten};

// Tests every second call; under a sanitizer, every sixth.
int Step() { return IsLong() ? 1 : kSanitized ? 6 : 2; }

}  // namespace

int FailEach(const std::string& path_part, bool (*fail_one)(const FileFault&)) {
  int befell = 0;
  for (const FileCall call : kCalls) {
    for (const FileFault::Kind kind : kKinds) {
      // Only writes can be done by half.
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

void ExpectOf(const FileFault& fault, const absl::Status& status,
              FaultyCatalog& catalog) {
  EXPECT_TRUE(status.ok() || catalog.files().befell()) << status;
  // Opening a file for reading never reports a full disk.
  if (fault.kind == FileFault::Kind::kNoSpace &&
      fault.call != FileCall::kOpen && !status.ok()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  }
}

}  // namespace attendant
