// Catalogs with keys on disk that are reloaded from their items alone.
#include <gmock/gmock.h>

#include <limits>
#include <memory>
#include <vector>

#include "core/base/fail_point.h"
#include "core/base/memory_budget.h"
#include "core/catalog/live/live_catalog.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/support/random_model.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

class LiveCatalogLoadTest : public CatalogFixture {
 protected:
  static constexpr int kDim = 4;
  // Segments of 1,024, 2,048 and 4,096 rows, and a remainder.
  static constexpr int kCount = 8000;
  static constexpr std::int64_t kKeyBytes = kDim * std::int64_t{sizeof(float)};

  // Stores the items on disk; no index is built while the test inspects them.
  void Store(IndexKind kind) {
    CatalogSchema schema = OneFieldSchema(kDim);
    schema.key_fields[0].index_kind = kind;
    schema.key_fields[0].keys_on_disk = true;
    LiveCatalogOptions options;
    options.settle_time = absl::Hours(1);
    options.auto_ivf_min_count = 2000;
    options.retry_time = absl::Hours(1);
    schema_ = schema;
    options_ = options;
    items_ = RandomItems(kCount, kDim, 1);
    for (std::size_t i = 0; i < items_.size(); i += 97) items_[i].keys[0] = {};
    MutexLock lock(&disk_->mutex);
    for (const Item& item : items_) disk_->items[item.id] = {item, 1};
    disk_->sequence = 1;
  }
  void TearDown() override { Close(); }

  void Open() {
    Close();
    ASSERT_OK(ArmFailPoint("merge.before_publish=wait"));
    Restart();
  }
  // Lets waiting work continue and finish.
  void Close() {
    EXPECT_OK(ArmFailPoint(""));
    catalog_ = nullptr;
  }

  void ExpectAllItems() {
    const auto snapshot = catalog_->snapshot();
    EXPECT_EQ(snapshot->item_count(), kCount);
    for (const Item& item : items_) {
      const auto address = snapshot->Find(item.id);
      ASSERT_TRUE(address.has_value()) << item.id;
      ASSERT_EQ(ItemAt(*snapshot, *address), item);
    }
  }
  std::int64_t mapped() { return catalog_->memory().mapped; }

  std::vector<Item> items_;
};

TEST_F(LiveCatalogLoadTest, KeysGoToFilesAsSegmentsFill) {
  for (const IndexKind kind :
       {IndexKind::kAuto, IndexKind::kIvf, IndexKind::kPq}) {
    SCOPED_TRACE(Name(kind));
    Store(kind);
    schema_.key_fields[0].keys_on_disk = false;
    Open();
    EXPECT_EQ(mapped(), 0);
    const std::int64_t all_in_memory = catalog_->memory_bytes();
    ASSERT_OK_AND_ASSIGN(const AttendAnswer before,
                         Ask(VectorQuery({1, -1, .5, 2})));
    const std::vector<std::string> ids_before = IdsOf(before);
    schema_.key_fields[0].keys_on_disk = true;
    Open();
    EXPECT_OK(catalog_->recovery().keys_in_memory);
    // All but the keys written before there were enough for an index, and those
    // of the growing segment.
    EXPECT_EQ(mapped(), (2048 + 4096) * kKeyBytes);
    EXPECT_EQ(catalog_->memory_bytes(), all_in_memory - mapped());
    ExpectAllItems();
    ASSERT_OK_AND_ASSIGN(const AttendAnswer after,
                         Ask(VectorQuery({1, -1, .5, 2})));
    EXPECT_EQ(after.log_partition, before.log_partition);
    EXPECT_EQ(IdsOf(after), ids_before);
    // Writes continue, and the index includes all of them.
    items_[5].keys[0] = {1, 2, 3, 4};
    Upsert({items_[5]});
    ASSERT_OK(ArmFailPoint(""));
    catalog_->AwaitIndexes();
    ASSERT_OK(catalog_->merge_status());
    EXPECT_EQ(catalog_->index_states()[0].active_kind,
              kind == IndexKind::kPq ? IndexKind::kPq : IndexKind::kIvf);
    ExpectAllItems();
  }
}

TEST_F(LiveCatalogLoadTest, TooFewForAnIndexStayInMemory) {
  Store(IndexKind::kAuto);
  options_.auto_ivf_min_count = kCount + 1;
  Open();
  EXPECT_EQ(mapped(), 0);
  EXPECT_EQ(disk_->scratch_files.appended_bytes(), 0);
}

TEST_F(LiveCatalogLoadTest, KeysOfHeadsGoAndTheirItemsStay) {
  Store(IndexKind::kIvf);
  NamedModel model;
  model.model =
      std::make_shared<const AttentionModel>(RandomMultiHeadModel(kDim));
  model.key_limit = std::numeric_limits<float>::max();
  models_ = {model};
  Open();
  const std::int64_t row_floats =
      model.model->multi_head()->key.weight.row_count;
  EXPECT_EQ(mapped(), (2048 + 4096) * row_floats * std::int64_t{sizeof(float)});
  ExpectAllItems();
}

TEST_F(LiveCatalogLoadTest, AFullDiskLeavesThemInMemory) {
  Store(IndexKind::kIvf);
  disk_->scratch_files.FailToCreate(
      absl::ResourceExhaustedError("the disk is full"));
  Open();
  EXPECT_THAT(catalog_->recovery().keys_in_memory,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the disk is full")));
  EXPECT_EQ(mapped(), 0);
  ExpectAllItems();
  // Fails in the middle of a file.
  disk_->scratch_files.FailToCreate(absl::OkStatus());
  disk_->scratch_files.FailAfter(2048 * kKeyBytes,
                                 absl::ResourceExhaustedError("full now"));
  Open();
  EXPECT_THAT(
      catalog_->recovery().keys_in_memory,
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("full now")));
  EXPECT_EQ(mapped(), 2048 * kKeyBytes);
  ExpectAllItems();
  disk_->scratch_files.FailAfter(0, absl::OkStatus());
  // Fails after the whole file is written.
  disk_->scratch_files.FailToMap(absl::InternalError("can't sync"));
  Open();
  EXPECT_THAT(catalog_->recovery().keys_in_memory,
              StatusIs(absl::StatusCode::kInternal, HasSubstr("can't sync")));
  EXPECT_EQ(mapped(), 0);
  ExpectAllItems();
}

TEST_F(LiveCatalogLoadTest, WithoutRoomOnTheDiskAndInMemoryItIsNotOpened) {
  Store(IndexKind::kIvf);
  MemoryBudget::Options limits;
  limits.limit_bytes = 100000;
  MemoryBudget budget(limits);
  options_.memory = &budget;
  const auto open = [&] {
    CatalogRecord record;
    record.name = "shop";
    record.uid = "0123456789abcdef";
    record.schema = schema_;
    return LiveCatalog::Open(record, std::vector<NamedModel>(1),
                             std::make_unique<FakeStore>(disk_), &background_,
                             options_);
  };
  disk_->scratch_files.FailToCreate(
      absl::ResourceExhaustedError("the disk is full"));
  const auto refused = open();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted,
                                HasSubstr("the disk is full")));
  EXPECT_EQ(ReasonOf(refused.status()), "MEMORY_LIMIT");
  disk_->scratch_files.FailToCreate(absl::OkStatus());
  EXPECT_OK(open());
}

}  // namespace
}  // namespace attendant
