// Data directories written by earlier programs open, and hold what they held.
#include "tests/durability/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

class GoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Opening writes to the directory, so the tests open a copy.
  void SetUp() override {
    std::filesystem::copy(std::string(GOLDEN_DIRECTORY) + "/" + GetParam(),
                          scratch_ / "data",
                          std::filesystem::copy_options::recursive);
    auto opened = CatalogSet::Open(scratch_ / "data", {});
    ASSERT_OK(opened);
    set_ = *std::move(opened);
  }

  const ScratchDirectory scratch_;
  std::unique_ptr<CatalogSet> set_;
};

TEST_P(GoldenTest, ItemsAreAllThere) {
  EXPECT_TRUE(set_->damages().empty());
  ASSERT_OK_AND_ASSIGN(const auto catalog, set_->Get(kGoldenCatalog));
  EXPECT_EQ(catalog->record().schema, TestRecord().schema);
  const std::vector<Item> want = GoldenRest();
  ASSERT_OK_AND_ASSIGN(const auto items,
                       StoredItems(*catalog, "", 2 * kGoldenItems));
  EXPECT_EQ(std::vector<Item>(items.begin(), items.end()), want);
  for (const Item& item : want) {
    ASSERT_OK_AND_ASSIGN(const auto found, ItemsIn(*catalog, {item.id}));
    EXPECT_EQ(found.front(), item);
  }
}

// Request ids must still be known; otherwise a client that got no answer before
// an upgrade would write twice.
TEST_P(GoldenTest, RequestsAreRemembered) {
  ASSERT_OK_AND_ASSIGN(const auto catalog, set_->Get(kGoldenCatalog));
  const std::int64_t sequence = catalog->snapshot()->sequence;
  EXPECT_EQ(sequence, 3);
  ASSERT_OK_AND_ASSIGN(
      const WriteOutcome first,
      catalog->Upsert(GoldenItems(0, kGoldenItems / 2), "first"));
  EXPECT_EQ(first.inserted_count, kGoldenItems / 2);
  ASSERT_OK_AND_ASSIGN(const WriteOutcome third,
                       catalog->Delete(GoldenDeletes(), "third"));
  EXPECT_EQ(third.deleted_count, 2);
  EXPECT_EQ(catalog->snapshot()->sequence, sequence);
}

TEST_P(GoldenTest, ModelsAreThereAndTheirNumbersUsedUp) {
  EXPECT_TRUE(set_->models().damages().empty());
  ASSERT_OK_AND_ASSIGN(const auto model,
                       set_->models().Get(kGoldenModel, std::nullopt));
  EXPECT_EQ(model->name.version, 2);
  EXPECT_EQ(model->model, TestModel("", 2).model);
  EXPECT_TRUE(absl::IsNotFound(set_->models().Get(kGoldenModel, 1).status()));
  ASSERT_OK_AND_ASSIGN(
      const auto next,
      set_->models().Create(kGoldenModel, TestModel("", 3).model, {}));
  EXPECT_EQ(next->name.version, 3);
}

// Segment files of an older version are rebuilt.
TEST_P(GoldenTest, SegmentsAreReadOrMadeAnew) {
  ASSERT_OK_AND_ASSIGN(const auto catalog, set_->Get(kGoldenCatalog));
  const Recovery& recovery = catalog->recovery();
  EXPECT_OK(recovery.files_not_used);
  if (GetParam() != "2026-12-01") {
    EXPECT_EQ(recovery.segment_count, 0);
  } else {
    EXPECT_EQ(recovery.segment_count, 1);
    // The table has the first write; replay adds the remaining items of the
    // second, and two deletes.
    EXPECT_EQ(recovery.row_count, kGoldenItems / 2);
    EXPECT_EQ(recovery.replayed_count, kGoldenItems / 2 + 1);
  }
}

TEST_P(GoldenTest, AliasesAndSnapshotsAreThere) {
  if (GetParam() == "0.1.0") GTEST_SKIP() << "had none";
  ASSERT_OK_AND_ASSIGN(const Alias alias, set_->GetAlias(kGoldenAlias));
  EXPECT_EQ(alias.catalog, kGoldenCatalog);
  LongWork work;
  ASSERT_OK_AND_ASSIGN(
      const auto restored,
      set_->RestoreSnapshot({kGoldenCatalog, kGoldenSnapshot}, "again", work));
  ASSERT_OK_AND_ASSIGN(const auto items,
                       StoredItems(*restored, "", 2 * kGoldenItems));
  EXPECT_EQ(std::vector<Item>(items.begin(), items.end()), GoldenRest());
}

INSTANTIATE_TEST_SUITE_P(
    Formats, GoldenTest,
    ::testing::Values("0.1.0", "2026-11", "2026-11-25", "2026-11-26",
                      "2026-11-27", "2026-11-29", "2026-11-30", "2026-12-01"),
    [](const auto& format) {
      std::string name = "Format" + format.param;
      std::erase_if(name, [](char c) { return c == '.' || c == '-'; });
      return name;
    });

}  // namespace
}  // namespace attendant
