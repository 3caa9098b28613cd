// Catalogs that reach their memory limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/memory_budget.h"
#include "core/base/status.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// Limits the accounts of one catalog only; the test process's own memory is
// ignored.
class MemoryLimitTest : public CatalogFixture {
 protected:
  void Open(std::int64_t limit_bytes, IndexKind kind = IndexKind::kFlat) {
    MemoryBudget::Options limits;
    limits.limit_bytes = limit_bytes;
    catalog_ = nullptr;  // uses the previous budget
    budget_ = std::make_unique<MemoryBudget>(limits);
    LiveCatalogOptions options;
    options.memory = budget_.get();
    options.retry_time = absl::Milliseconds(1);
    CatalogSchema schema = OneFieldSchema(64);
    schema.key_fields[0].index_kind = kind;
    OpenCatalog(schema, options);
  }
  // Writes batches of 100 items until one is refused; returns the last status.
  absl::Status Fill() {
    absl::Status status;
    for (int seed = 0; status.ok(); ++seed) {
      std::vector<Item> items = RandomItems(100, 64, seed);
      for (Item& item : items) item.id += "-" + std::to_string(seed);
      status = catalog_->Upsert(items, "").status();
    }
    return status;
  }
  ~MemoryLimitTest() override { catalog_ = nullptr; }

  std::unique_ptr<MemoryBudget> budget_;
};

TEST_F(MemoryLimitTest, WritesAreRefusedAndReadsAndDeletesGoOn) {
  constexpr std::int64_t kLimit = 4 << 20;
  Open(kLimit);
  const absl::Status full = Fill();
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted,
                             HasSubstr("memory is full")));
  EXPECT_EQ(ReasonOf(full), "MEMORY_LIMIT");
  EXPECT_LE(budget_->use().counted_bytes, kLimit);
  EXPECT_GE(budget_->use().counted_bytes, kLimit * 8 / 10);
  EXPECT_EQ(budget_->use().counted_bytes, catalog_->memory_bytes());
  const std::int64_t sequence = catalog_->snapshot()->sequence;
  const std::int64_t item_count = catalog_->snapshot()->item_count();
  EXPECT_THAT(catalog_->Import(RandomItems(100, 64, 99)).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
  EXPECT_EQ(catalog_->snapshot()->sequence, sequence);
  EXPECT_OK(Ask(VectorQuery(std::vector<float>(64, 1))));
  EXPECT_OK(ItemsIn(*catalog_, {"item1-0"}));
  Delete({"item1-0"});
  EXPECT_EQ(catalog_->snapshot()->item_count(), item_count - 1);
}

TEST_F(MemoryLimitTest, WritesResumeWhenMemoryIsFree) {
  Open(4 << 20);
  MemoryBudget::Account other = budget_->OpenAccount();
  other.Set(4 << 20);
  EXPECT_THAT(catalog_->Upsert(RandomItems(1, 64, 1), "").status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
  other.Set(0);
  EXPECT_OK(catalog_->Upsert(RandomItems(1, 64, 1), ""));
  catalog_ = nullptr;
  EXPECT_EQ(budget_->use().counted_bytes, 0);
}

TEST_F(MemoryLimitTest, WritesThatFitButNotTogetherAreNotBothTaken) {
  const std::vector<Item> items = RandomItems(2000, 64, 1);
  Open(0);
  Upsert(items);
  const std::int64_t both = 2 * budget_->use().counted_bytes;
  const auto other_disk = std::make_shared<FakeDisk>();
  disk_ = std::make_shared<FakeDisk>();
  Open(both);
  CatalogRecord record;
  record.name = "other";
  record.schema = schema_;
  ASSERT_OK_AND_ASSIGN(
      const auto other,
      LiveCatalog::Open(record, std::vector<NamedModel>(1),
                        std::make_unique<FakeStore>(other_disk), &background_,
                        options_));
  {
    MutexLock lock(&disk_->mutex);
    disk_->held = true;
  }
  std::thread first([&] { Upsert(items); });
  {
    MutexLock lock(&disk_->mutex);
    while (disk_->write_count == 0) disk_->changed.Wait(&disk_->mutex);
  }
  // A write temporarily takes about twice the memory that its rows keep.
  EXPECT_THAT(other->Upsert(items, "").status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the write wants")));
  {
    MutexLock lock(&disk_->mutex);
    disk_->held = false;
  }
  disk_->changed.NotifyAll();
  first.join();
}

TEST_F(MemoryLimitTest, EncodersAreCountedWhileTheyAreStored) {
  TextEncoderParts parts;
  parts.terms = {"clock"};
  parts.idf = {1};
  parts.dim = 64;
  parts.projection.assign(64, 1);
  Open(0);
  const std::int64_t before = budget_->use().counted_bytes;
  {
    MutexLock lock(&disk_->mutex);
    disk_->held = true;
  }
  std::thread setter(
      [&] { EXPECT_OK(SetEncoder(*catalog_, *TextEncoder::Create(parts))); });
  std::int64_t counted = 0;
  {
    MutexLock lock(&disk_->mutex);
    while (disk_->write_count == 0) disk_->changed.Wait(&disk_->mutex);
    counted = budget_->use().counted_bytes;
    disk_->held = false;
  }
  disk_->changed.NotifyAll();
  setter.join();
  EXPECT_EQ(counted, budget_->use().counted_bytes);
  EXPECT_GT(counted, before);
}

// The merges that follow free more memory than they take.
TEST_F(MemoryLimitTest, DeletesFreeMemoryThoughThereIsNone) {
  constexpr std::int64_t kLimit = 16 << 20;
  Open(kLimit);
  EXPECT_FALSE(Fill().ok());
  MemoryBudget::Account other = budget_->OpenAccount();
  other.Set(kLimit);
  std::vector<std::string> ids;
  const auto snapshot = catalog_->snapshot();
  for (const SegmentView& view : snapshot->segments) {
    for (RowIndex row = 0; row < view.row_end; ++row) {
      ids.emplace_back(view.segment->rows->Id(row));
    }
  }
  // All but a tenth.
  ids.resize(ids.size() * 9 / 10);
  ASSERT_OK(catalog_->Delete(ids, ""));
  catalog_->AwaitIndexes();
  EXPECT_OK(catalog_->merge_status());
  EXPECT_LE(catalog_->memory_bytes(), kLimit / 4);
  other.Set(0);
  EXPECT_OK(catalog_->Upsert(RandomItems(1, 64, 99), ""));
}

TEST_F(MemoryLimitTest, AnIndexBuildWithoutRoomIsPutOffAndThenMade) {
  constexpr std::int64_t kLimit = 64 << 20;
  Open(kLimit, IndexKind::kIvf);
  MemoryBudget::Account other = budget_->OpenAccount();
  other.Set(kLimit - (4 << 20));
  Upsert(RandomItems(5000, 64, 1));
  catalog_->AwaitIndexes();
  EXPECT_THAT(catalog_->merge_status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("an index build wants")));
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kFlat);
  EXPECT_OK(Ask(VectorQuery(std::vector<float>(64, 1))));
  // No write is needed to start the merges.
  other.Set(0);
  while (catalog_->index_states()[0].active_kind != IndexKind::kIvf) {
    absl::SleepFor(absl::Milliseconds(1));
    catalog_->AwaitIndexes();
  }
  EXPECT_OK(catalog_->merge_status());
  background_.Remove(catalog_.get());
  EXPECT_EQ(budget_->use().counted_bytes, catalog_->memory_bytes());
}

// Succeeds without a further write or free memory.
TEST_F(MemoryLimitTest, AnIndexBuildThatIsNotWantedAnyMoreHasNotFailed) {
  constexpr std::int64_t kLimit = 64 << 20;
  Open(kLimit, IndexKind::kIvf);
  MemoryBudget::Account other = budget_->OpenAccount();
  other.Set(kLimit - (4 << 20));
  Upsert(RandomItems(5000, 64, 1));
  catalog_->AwaitIndexes();
  EXPECT_THAT(
      catalog_->merge_status(),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("index build")));
  std::vector<KeyFieldSchema> fields = schema_.key_fields;
  fields[0].index_kind = IndexKind::kFlat;
  SetDefaults(fields, {NamedModel()});
  catalog_->AwaitIndexes();
  EXPECT_OK(catalog_->merge_status());
}

}  // namespace
}  // namespace attendant
