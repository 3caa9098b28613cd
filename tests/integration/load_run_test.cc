// attendant-load against the real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/integration/binaries.h"
#include "tests/integration/server_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

class LoadRunTest : public ::testing::Test {
 protected:
  // Enough items for an index of inverted lists, with this threshold.
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        server_,
        ServerProcess::Start(data_.path(), {"--auto-ivf-min-count", "1000"}));
  }

  CommandResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {kAttendantLoad, "--server", server_->address()});
    return RunCommand(arguments);
  }

  CommandResult Prepare() {
    return Run({"--catalog", "bench", "--json", "prepare", "--items", "2000",
                "--dim", "16", "--clusters", "50", "--wait-index"});
  }

  ScratchDirectory data_;
  std::unique_ptr<ServerProcess> server_;
};

TEST_F(LoadRunTest, FiveSecondsGiveAReportThatIsVerified) {
  const CommandResult prepared = Prepare();
  ASSERT_EQ(prepared.exit_status, 0) << prepared.err;
  EXPECT_EQ(nlohmann::json::parse(prepared.out)["items"], 2000);

  const CommandResult run =
      Run({"--catalog", "bench", "--duration", "5", "--warmup", "0.5",
           "--concurrency", "8", "--verify", "200", "--json"});
  ASSERT_EQ(run.exit_status, 0) << run.err;
  const auto report = nlohmann::json::parse(run.out);
  const std::int64_t count = report["count"];
  EXPECT_GT(count, 0);
  EXPECT_EQ(report["statusCodeDistribution"]["OK"], count);
  EXPECT_TRUE(report["errorDistribution"].empty());
  EXPECT_GT(report["rps"], 0);
  EXPECT_LE(report["fastest"], report["average"]);
  EXPECT_LE(report["average"], report["slowest"]);
  EXPECT_EQ(report["verify"]["count"], 200);
  EXPECT_GE(report["verify"]["recall"], 0.9);
  // Logits returned are exact, whatever found the item.
  EXPECT_EQ(report["verify"]["maxLogitDifference"], 0);
  EXPECT_EQ(report["options"]["concurrency"], 8);
}

TEST_F(LoadRunTest, ExitStatusSaysWhatWentWrong) {
  const std::vector<std::string> quick = {"--duration", "0.2", "--warmup", "0"};
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), quick.begin(), quick.end());
    return Run(arguments);
  };
  const CommandResult missing = run({"--catalog", "none"});
  EXPECT_EQ(missing.exit_status, 1);
  EXPECT_THAT(missing.err, HasSubstr("none"));

  EXPECT_EQ(run({}).exit_status, 2);
  const std::string queries = data_ / "queries.npy";
  WriteWholeFile(queries, "not an array");
  const CommandResult damaged =
      run({"--catalog", "bench", "--queries", queries});
  EXPECT_EQ(damaged.exit_status, 2);
  EXPECT_THAT(damaged.err, HasSubstr(queries));

  ASSERT_EQ(Prepare().exit_status, 0);
  const CommandResult again = Prepare();
  EXPECT_EQ(again.exit_status, 1);
  EXPECT_THAT(again.err, HasSubstr("--replace"));

  EXPECT_EQ(server_->Stop(), 0);
  EXPECT_EQ(run({"--catalog", "bench"}).exit_status, 3);
}

}  // namespace
}  // namespace attendant
