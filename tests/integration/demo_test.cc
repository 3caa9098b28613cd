// Runs scripts/demo in its small form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/binaries.h"
#include "tests/integration/process.h"
#include "tests/support/scratch_directory.h"

namespace attendant {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class DemoTest : public ::testing::Test {
 protected:
  // The demo's server outlives the demo but must not outlive the test.
  void TearDown() override { EXPECT_EQ(Demo({"--stop"}).exit_status, 0); }

  static std::string BinDir() {
    const std::string program = kAttendantd;
    return program.substr(0, program.rfind('/'));
  }

  static CommandResult DemoAt(const std::string& data,
                              const std::vector<std::string>& flags,
                              const std::string& bin_dir = BinDir()) {
    std::vector<std::string> command = {
        "/usr/bin/env", absl::StrCat("ATTENDANT_BIN_DIR=", bin_dir),
        absl::StrCat(kSourceDir, "/scripts/demo")};
    command.insert(command.end(), flags.begin(), flags.end());
    command.push_back(data);
    return RunCommand(command, absl::Minutes(3));
  }

  CommandResult Demo(const std::vector<std::string>& flags) {
    return DemoAt(data_.path(), flags);
  }

  // Returns "process PID at ADDRESS", as the demo's last lines say.
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
  // A lookup returns one item with the whole weight, an alarm clock; so does
  // the first answer to the misspelling.
  const std::size_t hard = first.out.find(", hard");
  ASSERT_NE(hard, std::string::npos);
  EXPECT_THAT(first.out.substr(hard),
              ContainsRegex("ALARM CLOCK [A-Z ]+100.0 %"));
  const std::size_t misspelt = first.out.find("A misspelling");
  ASSERT_NE(misspelt, std::string::npos);
  EXPECT_THAT(first.out.substr(misspelt), HasSubstr("ALARM CLOCK"));
  // The reports of the fits, and the commands to continue with.
  EXPECT_THAT(first.out, HasSubstr("attendant fit lsi "));
  EXPECT_THAT(first.out, HasSubstr("  Chose score "));
  EXPECT_THAT(first.out,
              HasSubstr("stop it: scripts/demo --stop " + data_.path()));
  const std::string server = ServerOf(first.out);
  EXPECT_THAT(first.out,
              HasSubstr(absl::StrCat(
                  "\nexport PATH=\"", BinDir(), ":$PATH\" ATTENDANT_SERVER=",
                  server.substr(server.find(" at ") + 4), "\n")));

  const CommandResult second = Demo({"--small"});
  ASSERT_EQ(second.exit_status, 0) << second.out << second.err;
  // The server still runs and gives the same answers.
  EXPECT_EQ(ServerOf(second.out), ServerOf(first.out));
  const auto answers = [](const std::string& output) {
    const std::size_t begin = output.find("── Customer");
    return output.substr(begin, output.find("── The server") - begin);
  };
  EXPECT_EQ(answers(second.out), answers(first.out));

  const std::string process = server.substr(0, server.find(" at "));
  EXPECT_EQ(Demo({"--stop"}).out,
            absl::StrCat("stopped the server (", process, ")\n"));
}

TEST_F(DemoTest, SaysThatTheCatalogWasChangedAndResetsIt) {
  const CommandResult first = Demo({"--small"});
  ASSERT_EQ(first.exit_status, 0) << first.out << first.err;
  const std::string server = ServerOf(first.out);
  const std::string address = server.substr(server.find(" at ") + 4);
  ASSERT_EQ(RunCommand({kAttendant, "--server", address, "items", "delete",
                        "shop", "22729"})
                .exit_status,
            0);
  const std::string reset =
      absl::StrCat("scripts/demo --reset ", data_.path(), " --small\n");
  EXPECT_THAT(Demo({"--small"}).out, HasSubstr(reset));

  const auto text_answers = [](const std::string& output) {
    const std::size_t begin = output.find("── Text search");
    return output.substr(begin, output.find("── The server") - begin);
  };
  const CommandResult again = Demo({"--small", "--reset"});
  ASSERT_EQ(again.exit_status, 0) << again.out << again.err;
  EXPECT_THAT(again.out, Not(HasSubstr(reset)));
  EXPECT_EQ(text_answers(again.out), text_answers(first.out));
}

TEST_F(DemoTest, StoppingWhatDoesNotRunMakesNothing) {
  const std::string data = data_ / "none";
  const CommandResult stopped = DemoAt(data, {"--stop"});
  EXPECT_EQ(stopped.exit_status, 0);
  EXPECT_EQ(stopped.out,
            absl::StrCat("no demo server is running on ", data, "\n"));
  EXPECT_FALSE(std::filesystem::exists(data));
}

TEST_F(DemoTest, BinariesThatAreNotThereAreRefusedFirst) {
  const std::string data = data_ / "none";
  const CommandResult refused = DemoAt(data, {"--small"}, data_.path());
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr(data_.path() + "/attendantd"));
  EXPECT_FALSE(std::filesystem::exists(data));
}

}  // namespace
}  // namespace attendant
