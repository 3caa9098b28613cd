// scripts/demo in its small form, twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/binaries.h"
#include "tests/integration/process.h"
#include "tests/support/scratch_directory.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

class DemoTest : public ::testing::Test {
 protected:
  // The demo's server outlives the demo, and must not outlive the test.
  void TearDown() override { EXPECT_EQ(Demo({"--stop"}).exit_status, 0); }

  CommandResult Demo(const std::vector<std::string>& flags) {
    const std::string program = kAttendantd;
    std::vector<std::string> command = {
        "/usr/bin/env",
        absl::StrCat("ATTENDANT_BIN_DIR=",
                     program.substr(0, program.rfind('/'))),
        absl::StrCat(kSourceDir, "/scripts/demo")};
    command.insert(command.end(), flags.begin(), flags.end());
    command.push_back(data_.path());
    return RunCommand(command, absl::Minutes(3));
  }

  // The line "  process PID at ADDRESS, ..." up to the comma.
  static std::string ServerOf(const std::string& output) {
    const std::size_t begin = output.find("process ");
    return output.substr(begin, output.find(',', begin) - begin);
  }

  ScratchDirectory data_;
};

TEST_F(DemoTest, ShowsAnswersAndIsIdempotent) {
  const CommandResult first = Demo({"--small"});
  ASSERT_EQ(first.exit_status, 0) << first.out << first.err;
  EXPECT_THAT(first.out, HasSubstr("whose products speak of"));
  EXPECT_THAT(first.out, HasSubstr("Items like this one"));
  EXPECT_THAT(first.out, HasSubstr("hard"));
  // Hard: the one item, with its whole weight, is an alarm clock; and so is
  // the first answer to the misspelling.
  EXPECT_THAT(first.out, HasSubstr("100.00% ██████████ ALARM CLOCK"));
  const std::size_t misspelt = first.out.find("A misspelling");
  ASSERT_NE(misspelt, std::string::npos);
  EXPECT_THAT(first.out.substr(misspelt), HasSubstr("ALARM CLOCK"));
  EXPECT_THAT(first.out, HasSubstr("stop it:   kill "));

  const CommandResult second = Demo({"--small"});
  ASSERT_EQ(second.exit_status, 0) << second.out << second.err;
  // The same server, still running, with the same answers.
  EXPECT_EQ(ServerOf(second.out), ServerOf(first.out));
  const auto answers = [](const std::string& output) {
    const std::size_t begin = output.find("── Customer");
    return output.substr(begin, output.find("── The server") - begin);
  };
  EXPECT_EQ(answers(second.out), answers(first.out));
}

}  // namespace
}  // namespace attendant
