// Random histories, cut at a random disk call. When the power returns, what was
// acknowledged is there, what was deleted is not, and an unacknowledged write
// is there completely or not at all.
//
// power_cut_test --count=3000 --seed=1     the long form
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/catalog/live/catalog_set.h"
#include "tests/durability/faulty_file_system.h"
#include "tests/durability/flags.h"
#include "tests/durability/world.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr int kCutsPerHistory = 4;

// Runs one history with several cuts. Cuts of odd seeds leave zeros.
absl::Status RunHistory(std::uint64_t seed, const std::string& directory,
                        std::int64_t* acknowledged_count) {
  std::mt19937_64 random(seed);
  const auto files = std::make_shared<FaultyFileSystem>(directory, seed);
  World world(directory, files, seed);
  for (int cut = 0; cut < kCutsPerHistory; ++cut) {
    // Opening alone takes about a hundred calls.
    files->CutPowerAt(1 + static_cast<std::int64_t>(random() % 400),
                      /*zeros=*/seed % 2 == 1);
    ATTENDANT_RETURN_IF_ERROR(world.Open());
    if (world.is_open() && !files->cut()) {
      ATTENDANT_RETURN_IF_ERROR(world.RepeatUnanswered());
    }
    while (!files->cut()) ATTENDANT_RETURN_IF_ERROR(world.Step());
    world.Close();
    files->RestoreAfterCut();
  }
  ATTENDANT_RETURN_IF_ERROR(world.Open());
  ATTENDANT_RETURN_IF_ERROR(world.RepeatUnanswered());
  ATTENDANT_RETURN_IF_ERROR(world.CompareAll());
  *acknowledged_count += world.acknowledged_count();
  world.Close();
  return absl::OkStatus();
}

TEST(PowerCutTest, NothingAcknowledgedIsLost) {
  const std::int64_t seed = Flag("seed", 1);
  const std::int64_t count = Flag("count", Short(60));
  std::int64_t acknowledged_count = 0;
  for (std::int64_t i = 0; i < count && !HasFailure(); ++i) {
    const ScratchDirectory directory;
    EXPECT_OK(RunHistory(static_cast<std::uint64_t>(seed + i),
                         directory / "data", &acknowledged_count))
        << "replay: power_cut_test --count=1 --seed=" << seed + i;
  }
  // Not every cut came before the first write.
  EXPECT_GT(acknowledged_count, 5 * count);
}

// An unsynced removal is undone, and then nothing tells whose file it was.
TEST(PowerCutTest, WhatWasDeletedLeavesNothing) {
  CatalogSchema schema;
  schema.key_fields.emplace_back();
  schema.key_fields[0].name = "key";
  schema.key_fields[0].dim = 2;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const ScratchDirectory directory;
    const auto files =
        std::make_shared<FaultyFileSystem>(directory / "data", seed);
    CatalogSet::Options options;
    options.store.file_system = files;
    {
      ASSERT_OK_AND_ASSIGN(const auto set,
                           CatalogSet::Open(directory / "data", options));
      ASSERT_OK(set->Create("shop", schema, {}));
      ASSERT_OK(set->Delete("shop"));
      files->CutPowerAt(1, /*zeros=*/false);
      set->Create("another", schema, {}).status().IgnoreError();
    }
    ASSERT_TRUE(files->cut());
    files->RestoreAfterCut();
    ASSERT_OK_AND_ASSIGN(const auto set,
                         CatalogSet::Open(directory / "data", options));
    EXPECT_OK(set->left_overs());
    EXPECT_FALSE(set->Get("shop").ok());
  }
}

}  // namespace
}  // namespace attendant
