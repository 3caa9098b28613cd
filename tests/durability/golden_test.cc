// Data directories that earlier programs wrote open, and hold what they held.
#include "tests/durability/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

class GoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Opening writes, so that it is a copy that is opened.
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
  std::vector<Item> want = GoldenItems(0, kGoldenItems);
  std::erase_if(want, [](const Item& item) {
    const auto deletes = GoldenDeletes();
    return std::count(deletes.begin(), deletes.end(), item.id) > 0;
  });
  ASSERT_OK_AND_ASSIGN(const auto items, catalog->List("", 2 * kGoldenItems));
  EXPECT_EQ(std::vector<Item>(items.begin(), items.end()), want);
  for (const Item& item : want) {
    ASSERT_OK_AND_ASSIGN(const auto found,
                         catalog->Get(std::vector<std::string>{item.id}));
    EXPECT_EQ(found.front(), item);
  }
}

// The same requests are known again, or a client that had no answer before an
// upgrade would write twice.
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

INSTANTIATE_TEST_SUITE_P(Formats, GoldenTest, ::testing::Values("0.1.0"),
                         [](const auto&) { return "Release0_1_0"; });

}  // namespace
}  // namespace attendant
