// How attendantd starts, refuses to start, and stops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/integration/binaries.h"
#include "tests/integration/requests.h"
#include "tests/integration/server_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Runs attendantd where it should end by itself.
CommandResult RunServer(const std::string& data_dir) {
  return RunCommand(
      {kAttendantd, "--data-dir", data_dir, "--listen", "127.0.0.1:0"});
}

TEST(StartupTest, PrintsItsConfigurationAndStopsOnSigterm) {
  const ScratchDirectory data;
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
  EXPECT_THAT(server->output(), HasSubstr(data.path()));
  EXPECT_THAT(server->address(), ::testing::StartsWith("127.0.0.1:"));
  EXPECT_EQ(server->Stop(), 0);
  std::istringstream log(server->log());
  std::string line;
  int line_count = 0;
  while (std::getline(log, line)) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
    ++line_count;
  }
  EXPECT_GT(line_count, 0);
}

TEST(StartupTest, RefusesADataDirectoryThatAnotherProcessHolds) {
  const ScratchDirectory data;
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
  const CommandResult second = RunServer(data.path());
  EXPECT_EQ(second.exit_status, 1);
  EXPECT_THAT(second.err, HasSubstr(data.path()));
  // The first is not disturbed.
  ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
  EXPECT_OK(client->ListCatalogs(v1::ListCatalogsRequest()));
}

TEST(StartupTest, RefusesANewerFormat) {
  const ScratchDirectory data;
  {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
    EXPECT_EQ(server->Stop(), 0);
  }
  ASSERT_NE(ReadWholeFile(data / "FORMAT"), "");
  WriteWholeFile(data / "FORMAT", "999\n");
  const CommandResult result = RunServer(data.path());
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("999"), HasSubstr("newer")));
}

TEST(StartupTest, ADeadProcessDoesNotHoldItsDataDirectory) {
  const ScratchDirectory data;
  {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
    server->Kill();
  }
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
  EXPECT_EQ(server->Stop(), 0);
}

TEST(StartupTest, UnknownFlagsAreRefused) {
  const CommandResult result = RunCommand({kAttendantd, "--no-such-flag"});
  EXPECT_NE(result.exit_status, 0);
  EXPECT_THAT(result.err, HasSubstr("no-such-flag"));
}

}  // namespace
}  // namespace attendant
