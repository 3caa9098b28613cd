// Checks that the durability tests can find bugs: each planted bug makes one of
// them fail, and without one none fails.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "tests/support/subprocess.h"

namespace attendant {
namespace {

// The program that finds each bug, and its arguments.
std::map<std::string_view, std::vector<std::string>> Finders() {
  const std::vector<std::string> model_check = {
      MODEL_CHECK_TEST, "--gtest_filter=*.CatalogsAreLikeTheModel"};
  const std::vector<std::string> power_cut = {POWER_CUT_TEST};
  const std::vector<std::string> damage = {
      DAMAGE_TEST, "--gtest_filter=*.AModelFileCostsItsVersionAlone"};
  return {{"acknowledge_before_commit", model_check},
          {"drop_tombstone", model_check},
          {"merge_dead_rows", model_check},
          {"merge_max", {ATTENTION_TEST, "--gtest_filter=StateTest.*"}},
          {"skip_log_sync", power_cut},
          {"skip_file_sync", power_cut},
          {"skip_segment_checksum",
           {SEGMENT_FILES_TEST, "--gtest_filter=*AfterDamage*"}},
          {"skip_model_checksum", damage}};
}

struct Outcome {
  int exit_status = -1;
  std::string output;
};

// Runs `program` in a separate process that writes no report, so that its
// failures are not this test's. `bug` is empty for none.
Outcome RunWith(std::string_view bug, const std::vector<std::string>& program) {
  std::vector<std::string> command = {"/usr/bin/env", "-u", "GTEST_OUTPUT"};
  if (!bug.empty()) {
    command.push_back(
        absl::StrCat("ATTENDANT_FAIL_POINT=", std::string(bug), "=bug"));
  }
  command.insert(command.end(), program.begin(), program.end());
  Subprocess process(command);
  Outcome run;
  while (const auto line = process.ReadLine()) {
    absl::StrAppend(&run.output, *line, "\n");
  }
  run.exit_status = process.Wait();
  return run;
}

TEST(PlantedBugsTest, EachIsFound) {
  const auto finders = Finders();
  for (const std::string_view bug : kPlantedBugs) {
    const auto finder = finders.find(bug);
    ASSERT_NE(finder, finders.end()) << bug << " has no test that finds it";
    const Outcome run = RunWith(bug, finder->second);
    // The program ran to its end and reported the failure.
    EXPECT_EQ(run.exit_status, 1) << bug << "\n" << run.output;
    EXPECT_TRUE(absl::StrContains(run.output, "[  FAILED  ]")) << bug << "\n"
                                                               << run.output;
  }
}

// Without this check, a finding might not be due to the planted bug.
TEST(PlantedBugsTest, WithoutOneNoneIsFound) {
  std::set<std::vector<std::string>> programs;
  for (const auto& [bug, finder] : Finders()) programs.insert(finder);
  for (const std::vector<std::string>& program : programs) {
    const Outcome run = RunWith("", program);
    EXPECT_EQ(run.exit_status, 0) << program[0] << "\n" << run.output;
  }
}

}  // namespace
}  // namespace attendant
