// Applies random operations to catalogs and to a plain model of them, with
// restarts and disk faults: one call fails, is done by half, or finds the disk
// full. Catalogs and model never differ; a failed write is there completely or
// not at all after the next restart.
//
// model_check_test --count=5000 --seed=1     the long form
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "tests/durability/faulty_file_system.h"
#include "tests/durability/flags.h"
#include "tests/durability/world.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr int kSteps = 120;

FileFault RandomFault(std::mt19937_64& random) {
  FileFault fault;
  constexpr FileFault::Kind kKinds[] = {
      FileFault::Kind::kFail, FileFault::Kind::kNoSpace,
      FileFault::Kind::kShorten, FileFault::Kind::kDelay};
  constexpr FileCall kCalls[] = {FileCall::kOpen,   FileCall::kCreate,
                                 FileCall::kWrite,  FileCall::kSync,
                                 FileCall::kRename, FileCall::kRemove};
  fault.kind = kKinds[random() % std::size(kKinds)];
  fault.call = kCalls[random() % std::size(kCalls)];
  fault.nth = 1 + static_cast<int>(random() % 12);
  return fault;
}

absl::Status RunHistory(std::uint64_t seed, const std::string& directory,
                        bool with_faults) {
  std::mt19937_64 random(seed);
  const auto files = std::make_shared<FaultyFileSystem>(directory, seed);
  World world(directory, files, seed);
  for (int step = 0; step < kSteps; ++step) {
    if (with_faults && random() % 16 == 0) files->Inject(RandomFault(random));
    ATTENDANT_RETURN_IF_ERROR(world.Step());
    if (random() % 24 != 0) continue;
    world.Close();
    // A restart may fail only if it meets a fault.
    ATTENDANT_RETURN_IF_ERROR(world.Open());
    if (files->befell()) world.Close();
    files->InjectNothing();
    if (!world.is_open()) ATTENDANT_RETURN_IF_ERROR(world.Open());
    ATTENDANT_RETURN_IF_ERROR(world.RepeatUnanswered());
  }
  files->InjectNothing();
  world.Close();
  ATTENDANT_RETURN_IF_ERROR(world.Open());
  ATTENDANT_RETURN_IF_ERROR(world.CompareAll());
  world.Close();
  return absl::OkStatus();
}

void RunHistories(std::int64_t otherwise, bool with_faults) {
  const std::int64_t seed = Flag("seed", 1);
  const std::int64_t count = Flag("count", otherwise);
  for (std::int64_t i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    const ScratchDirectory directory;
    EXPECT_OK(RunHistory(static_cast<std::uint64_t>(seed + i),
                         directory / "data", with_faults))
        << "replay: model_check_test --count=1 --seed=" << seed + i;
  }
}

TEST(ModelCheckTest, CatalogsAreLikeTheModel) {
  RunHistories(Short(10), false);
}

TEST(ModelCheckTest, FaultsOfTheDiskChangeNothingElse) {
  RunHistories(Short(15), true);
}

}  // namespace
}  // namespace attendant
