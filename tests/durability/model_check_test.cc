// Applies random operations to catalogs and to a plain model of them, with
// restarts and disk faults: one call fails, is done by half, or finds the disk
// full. Catalogs and model never differ; a failed write is there completely or
// not at all after the next restart.
//
// model_check_test --count=5000 --seed=1     the long form
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
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
// Of a history; some 70 are.
constexpr std::int64_t kMinAcknowledged = 40;
constexpr FileFault::Kind kKinds[] = {
    FileFault::Kind::kFail, FileFault::Kind::kNoSpace,
    FileFault::Kind::kShorten, FileFault::Kind::kDelay};

FileFault RandomFault(std::mt19937_64& random) {
  FileFault fault;
  constexpr FileCall kCalls[] = {FileCall::kOpen,   FileCall::kCreate,
                                 FileCall::kWrite,  FileCall::kSync,
                                 FileCall::kRename, FileCall::kRemove};
  fault.kind = kKinds[random() % std::size(kKinds)];
  fault.call = kCalls[random() % std::size(kCalls)];
  fault.nth = 1 + static_cast<int>(random() % 12);
  return fault;
}

// What histories did, so that they can't pass without doing it.
struct Tally {
  std::int64_t acknowledged_count = 0;
  std::int64_t index_answer_count = 0;
  std::map<FileFault::Kind, int> struck_counts;
};

absl::Status RunHistory(std::uint64_t seed, const std::string& directory,
                        bool with_faults, Tally& tally) {
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
  tally.acknowledged_count += world.acknowledged_count();
  tally.index_answer_count += world.index_answer_count();
  for (const FileFault& fault : files->struck()) {
    ++tally.struck_counts[fault.kind];
  }
  return absl::OkStatus();
}

void RunHistories(std::int64_t otherwise, bool with_faults) {
  Tally tally;
  const std::int64_t seed = Flag("seed", 1);
  const std::int64_t count = Flag("count", otherwise);
  for (std::int64_t i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    const ScratchDirectory directory;
    EXPECT_OK(RunHistory(static_cast<std::uint64_t>(seed + i),
                         directory / "data", with_faults, tally))
        << "replay: model_check_test --count=1 --seed=" << seed + i;
  }
  // Replays of a few histories need not do everything.
  if (::testing::Test::HasFailure() || count < otherwise) return;
  EXPECT_GE(tally.acknowledged_count, kMinAcknowledged * count);
  // What hangs on time is certain only of many histories: an index answers once
  // it is built, and a fault strikes if its call comes.
  EXPECT_GE(tally.index_answer_count, count / 10);
  if (!with_faults) return;
  for (const FileFault::Kind kind : kKinds) {
    EXPECT_GE(tally.struck_counts[kind], count / 10) << static_cast<int>(kind);
  }
}

TEST(ModelCheckTest, AFaultExplainsItsOwnErrors) {
  using Kind = FileFault::Kind;
  const std::string path = "items/1/2.log";
  const std::string own = absl::StrCat("can't write: ", kInjectedError, path);
  for (const Kind kind : {Kind::kFail, Kind::kShorten, Kind::kNoSpace,
                          Kind::kDelay, Kind::kHold}) {
    const FileFault fault = {kind, FileCall::kOpen, 1, path};
    EXPECT_EQ(Explains(fault, absl::InternalError(own)),
              kind == Kind::kFail || kind == Kind::kShorten);
    EXPECT_EQ(Explains(fault, absl::ResourceExhaustedError(own)),
              kind == Kind::kNoSpace);
    EXPECT_FALSE(Explains(fault, absl::DataLossError(own)));
    EXPECT_FALSE(Explains(fault, absl::UnavailableError(own)));
    EXPECT_FALSE(Explains(fault, absl::InternalError(path)));
    EXPECT_FALSE(Explains(fault, absl::InternalError(kInjectedError)));
  }
}

TEST(ModelCheckTest, APartOfASnapshotThatCanNotBeReadIsLost) {
  using Kind = FileFault::Kind;
  const std::string path = "snapshots/a/b/record";
  const absl::Status lost =
      absl::DataLossError(absl::StrCat(kInjectedError, path));
  EXPECT_TRUE(Explains({Kind::kFail, FileCall::kOpen, 1, path}, lost));
  EXPECT_FALSE(Explains({Kind::kFail, FileCall::kWrite, 1, path}, lost));
  EXPECT_FALSE(Explains({Kind::kNoSpace, FileCall::kOpen, 1, path}, lost));
  EXPECT_FALSE(Explains({Kind::kDelay, FileCall::kOpen, 1, path}, lost));
}

TEST(ModelCheckTest, CatalogsAreLikeTheModel) {
  RunHistories(Short(10), false);
}

TEST(ModelCheckTest, FaultsOfTheDiskChangeNothingElse) {
  RunHistories(Short(15), true);
}

}  // namespace
}  // namespace attendant
