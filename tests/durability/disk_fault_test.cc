// One call to the disk fails, at each place of a fixed history: no write is
// acknowledged that is not durable, reads go on, writes go on by themselves
// once the disk is well, and after a restart nothing is lost.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/catalog/catalog_set.h"
#include "tests/durability/faulty_file_system.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr int kWrites = 8;

CatalogSchema SchemaOf() {
  CatalogSchema schema;
  KeyFieldSchema field;
  field.name = "key";
  field.dim = 2;
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
  FaultyCatalog()
      : files_(std::make_shared<FaultyFileSystem>(path(), /*seed=*/1)) {}

  FaultyFileSystem& files() { return *files_; }
  std::string path() const { return directory_ / "data"; }

  absl::Status Open() {
    Close();
    CatalogSet::Options options;
    options.store.file_system = files_;
    ATTENDANT_ASSIGN_OR_RETURN(set_, CatalogSet::Open(path(), options));
    for (const auto& [name, damage] : set_->damages()) return damage;
    ATTENDANT_ASSIGN_OR_RETURN(const auto created,
                               set_->Create("shop", SchemaOf(), {}));
    catalog_ = created.catalog;
    return absl::OkStatus();
  }
  void Close() {
    catalog_ = nullptr;
    set_ = nullptr;
  }

  absl::Status Write() {
    const Item item = ItemOf(next_++);
    const absl::Status status =
        catalog_->Upsert(std::vector<Item>{item}, "").status();
    (status.ok() ? acknowledged_ : failed_).push_back(item);
    return status;
  }

  // What was acknowledged, and nothing that failed.
  void ExpectAcknowledged() {
    const auto snapshot = catalog_->snapshot();
    for (const Item& item : acknowledged_) {
      const auto found = catalog_->Get(std::vector<std::string>{item.id});
      ASSERT_OK(found);
      EXPECT_EQ(found->front(), item);
    }
    for (const Item& item : failed_) {
      EXPECT_FALSE(snapshot->Find(item.id)) << item.id;
    }
    EXPECT_EQ(snapshot->item_count(),
              static_cast<std::int64_t>(acknowledged_.size()));
  }

 private:
  const ScratchDirectory directory_;
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

// Returns false if the history has no such call.
bool FailOneWrite(const FileFault& fault) {
  SCOPED_TRACE(Text(fault));
  FaultyCatalog catalog;
  EXPECT_OK(catalog.Open());
  for (int i = 0; i < 3; ++i) EXPECT_OK(catalog.Write());
  catalog.files().Inject(fault);
  absl::Status failed;
  for (int i = 0; i < kWrites && failed.ok(); ++i) failed = catalog.Write();
  const bool befell = catalog.files().befell();
  // The mark of what was acknowledged may fail: the next one makes up for it.
  EXPECT_TRUE(befell || failed.ok()) << failed;
  if (fault.kind == FileFault::Kind::kNoSpace && !failed.ok()) {
    EXPECT_EQ(failed.code(), absl::StatusCode::kResourceExhausted) << failed;
  }
  catalog.ExpectAcknowledged();
  catalog.files().InjectNothing();
  EXPECT_OK(catalog.Write());
  catalog.ExpectAcknowledged();
  EXPECT_OK(catalog.Open());
  catalog.ExpectAcknowledged();
  EXPECT_OK(catalog.Write());
  return befell;
}

TEST(DiskFaultTest, AFailedWriteIsNotAcknowledgedAndNotTheEnd) {
  int befell = 0;
  for (const FileCall call : {FileCall::kWrite, FileCall::kSync}) {
    for (const FileFault::Kind kind :
         {FileFault::Kind::kFail, FileFault::Kind::kNoSpace,
          FileFault::Kind::kShorten}) {
      for (int nth = 1; nth <= kWrites; ++nth) {
        befell += FailOneWrite({kind, call, nth, "/items/"});
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GE(befell, 30);
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

TEST(DiskFaultTest, AFailedStartLosesNothing) {
  int befell = 0;
  for (const FileCall call :
       {FileCall::kOpen, FileCall::kCreate, FileCall::kWrite, FileCall::kSync,
        FileCall::kRename, FileCall::kRemove}) {
    for (int nth = 1; nth <= 40; nth += nth < 8 ? 1 : 5) {
      if (!FailOneOpen({FileFault::Kind::kFail, call, nth, ""})) break;
      ++befell;
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(befell, 30);
}

}  // namespace
}  // namespace attendant
