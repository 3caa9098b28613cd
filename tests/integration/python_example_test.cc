// A client that uses only the .proto files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/integration/binaries.h"
#include "tests/integration/server_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

TEST(PythonExampleTest, RecommendsByAttention) {
  const ScratchDirectory data;
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
  const std::vector<std::string> command = {
      // Debian's interpreter, whatever python3 is first in PATH.
      "/usr/bin/python3",
      absl::StrCat(kSourceDir, "/examples/python/recommend.py"), "--server",
      server->address()};
  const CommandResult first = RunCommand(command);
  ASSERT_EQ(first.exit_status, 0) << first.err;
  // "alien" is (0.9, 0) and left out; the others have these logits at
  // temperature 0.25.
  const double partition = std::exp(3.6) + std::exp(2.88) + std::exp(1.08) +
                           std::exp(0.36) + std::exp(0);
  EXPECT_NEAR(std::atof(first.out.c_str()), std::exp(3.6) / partition, 2e-6);
  EXPECT_THAT(first.out, HasSubstr("Die Hard"));
  EXPECT_THAT(first.out, ::testing::Not(HasSubstr("Alien")));
  // The second run creates and writes what already exists.
  const CommandResult second = RunCommand(command);
  EXPECT_EQ(second.exit_status, 0) << second.err;
  EXPECT_EQ(second.out, first.out);
}

}  // namespace
}  // namespace attendant
