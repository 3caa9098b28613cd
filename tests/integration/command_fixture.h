// Runs the `attendant` command against a server.
#ifndef ATTENDANT_TESTS_INTEGRATION_COMMAND_FIXTURE_H_
#define ATTENDANT_TESTS_INTEGRATION_COMMAND_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/binaries.h"
#include "tests/integration/process.h"
#include "tests/integration/server_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {

class CommandFixture : public ::testing::Test {
 protected:
  void SetUp() override { Start(); }

  // Starts the server again after the previous one has ended.
  void Start() {
    server_ = nullptr;
    ASSERT_OK_AND_ASSIGN(server_, ServerProcess::Start(data_.path()));
  }

  CommandResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {kAttendant, "--server", server_->address()});
    return RunCommand(arguments);
  }

  // Runs a command that should succeed and returns its output.
  std::string RunText(std::vector<std::string> arguments) {
    const CommandResult result = Run(std::move(arguments));
    EXPECT_EQ(result.exit_status, 0) << result.err;
    return result.out;
  }

  // Runs a command with JSON output and returns its reply.
  nlohmann::json RunJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--json");
    const std::string out = RunText(std::move(arguments));
    nlohmann::json reply = nlohmann::json::parse(out, nullptr, false);
    EXPECT_FALSE(reply.is_discarded()) << out;
    return reply;
  }

  std::string File(const std::string& name, const std::string& content) {
    WriteWholeFile(files_ / name, content);
    return files_ / name;
  }

  ScratchDirectory data_;
  ScratchDirectory files_;
  std::unique_ptr<ServerProcess> server_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_INTEGRATION_COMMAND_FIXTURE_H_
