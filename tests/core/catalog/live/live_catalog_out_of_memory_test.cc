// Fails allocations one at a time.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/core/catalog/failing_allocation.h"
#include "tests/core/catalog/live/live_catalog_fixture.h"
#include "tests/support/sanitized.h"

namespace attendant {
namespace {

// Otherwise a restart would use the stored defaults and find a key that the
// model can't take, or no model.
TEST_F(LiveCatalogTest, WithoutMemoryDefaultsThatAreStoredKeepTheirModels) {
  MultiHeadProjections heads;
  heads.head_count = 1;
  heads.query = heads.key = {{1, 1, {1}}, {}};
  const NamedModel wanted{
      {"taste", 1},
      std::make_shared<const AttentionModel>(AttentionModel{heads}),
      /*key_limit=*/1};
  const CatalogSchema schema = OneFieldSchema(1);
  CatalogSchema changed = schema;
  changed.key_fields[0].model = wanted.name;
  changed.attributes = {{"price", AttributeType::kDouble}};
  bool befell = true;
  for (int nth = 1; befell; ++nth) {
    SCOPED_TRACE(nth);
    disk_ = std::make_shared<FakeDisk>();
    OpenCatalog(schema);
    Upsert({MakeItem("small", {1})});
    const std::vector<NamedModel> models = {wanted};
    bool stored = false;
    absl::Status status = absl::ResourceExhaustedError("thrown");
    befell = WithoutMemoryAt(nth, [&] {
      status = catalog_->UpdateSchema(changed, models, [&] {
        stored = true;
        return absl::OkStatus();
      });
    });
    EXPECT_EQ(catalog_->Upsert(std::vector{MakeItem("large", {2})}, "").ok(),
              !stored);
    // A model that may be in use is not deleted.
    EXPECT_EQ(catalog_->MayUse(wanted.name), stored);
    // The change applies as a whole or not at all; it can be made again.
    EXPECT_EQ(catalog_->record().schema.key_fields[0].model,
              status.ok() ? wanted.name : ModelName());
    EXPECT_EQ(catalog_->record().schema.attributes,
              status.ok() ? changed.attributes : schema.attributes);
    EXPECT_TRUE(!status.ok() || stored);
    if (!stored) continue;
    EXPECT_OK(catalog_->UpdateSchema(changed, models,
                                     [] { return absl::OkStatus(); }));
    EXPECT_EQ(catalog_->record().schema.key_fields[0].model, wanted.name);
  }
}

TEST_F(LiveCatalogTest, WithoutMemoryEncodersThatAreStoredAreUsed) {
  TextEncoderParts parts;
  parts.terms = {"clock"};
  parts.idf = {1};
  parts.dim = 1;
  parts.projection = {1};
  bool befell = true;
  for (int nth = 1; befell; ++nth) {
    SCOPED_TRACE(nth);
    disk_ = std::make_shared<FakeDisk>();
    OpenCatalog(OneFieldSchema(1));
    std::vector<LiveCatalog::FieldEncoder> encoders;
    encoders.push_back({0, *TextEncoder::Create(parts)});
    befell = WithoutMemoryAt(
        nth, [&] { catalog_->SetEncoders(std::move(encoders)).IgnoreError(); });
    MutexLock lock(&disk_->mutex);
    EXPECT_EQ(catalog_->snapshot()->encoders[0] != nullptr,
              !disk_->encoders["vec"].empty());
  }
}

// The background threads retry their work.
TEST_F(LiveCatalogTest, WithoutMemoryBackgroundWorkIsPutOffAndNotForgotten) {
  CatalogSchema schema = OneFieldSchema(4);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  LiveCatalogOptions options;
  options.settle_time = absl::ZeroDuration();
  options.retry_time = absl::Milliseconds(1);
  const std::vector<Item> items = RandomItems(30, 4, 5);
  bool befell = true;
  int nth = 0;
  while (befell) {
    nth += 1 + nth / 4;
    SCOPED_TRACE(nth);
    disk_ = std::make_shared<FakeDisk>();
    OpenCatalog(schema, options);
    {
      const FailingElsewhere failing(nth);
      Upsert(items);
      catalog_->AwaitIndexes();
      befell = failing.befell();
    }
    // A pause may have delayed the work beyond the first wait.
    catalog_->AwaitIndexes();
    EXPECT_EQ(catalog_->snapshot()->segments[0].segment->indexes[0]->kind(),
              IndexKind::kIvf);
    EXPECT_EQ(IdsOf(*Ask(VectorQuery({1, 0, 0, 0}))).size(), 10);
  }
  EXPECT_TRUE(nth > 1 || kSanitized);
}

// If a completed write can't schedule the merge, the next write does.
TEST_F(LiveCatalogTest, WithoutMemoryAMergeIsPutOffAndNotForgotten) {
  CatalogSchema schema = OneFieldSchema(4);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  const std::vector<Item> items = RandomItems(30, 4, 5);
  bool befell = true;
  for (int nth = 1; befell; ++nth) {
    SCOPED_TRACE(nth);
    disk_ = std::make_shared<FakeDisk>();
    CatalogRecord record;
    record.name = "shop";
    record.schema = schema;
    LiveCatalogOptions options;
    options.settle_time = absl::ZeroDuration();
    BackgroundWorker background;  // which needs memory for its first task
    ASSERT_OK_AND_ASSIGN(const auto catalog,
                         LiveCatalog::Open(record, std::vector<NamedModel>(1),
                                           std::make_unique<FakeStore>(disk_),
                                           &background, options));
    std::optional<FailingAllocation> failing;
    const auto set_when_written = [&](std::function<void()> then) {
      MutexLock lock(&disk_->mutex);
      disk_->when_written = std::move(then);
    };
    set_when_written([&] { failing.emplace(nth); });
    const absl::Status written = catalog->Upsert(items, "").status();
    befell = failing->befell();
    failing.reset();
    EXPECT_OK(written);
    set_when_written(nullptr);
    ASSERT_OK(catalog->Upsert(items, ""));
    for (int i = 0; i < 5000; ++i) {
      if (catalog->index_states()[0].active_kind == IndexKind::kIvf) break;
      absl::SleepFor(absl::Milliseconds(1));
    }
    ASSERT_EQ(catalog->index_states()[0].active_kind, IndexKind::kIvf);
  }
}

}  // namespace
}  // namespace attendant
