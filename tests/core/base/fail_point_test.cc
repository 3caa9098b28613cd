#include "core/base/fail_point.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <set>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

class FailPointTest : public ::testing::Test {
 protected:
  ~FailPointTest() override { EXPECT_OK(ArmFailPoint("")); }
};

absl::Status Operation() {
  ATTENDANT_FAIL_POINT_OR_RETURN("log.after_sync");
  return absl::OkStatus();
}

void OperationThatCanNotFail() { ATTENDANT_FAIL_POINT("log.after_sync"); }

bool HasBug() { return ATTENDANT_PLANTED_BUG("skip_log_sync"); }

TEST_F(FailPointTest, IsNothingUntilItIsArmed) {
  EXPECT_OK(Operation());
  EXPECT_FALSE(HasBug());
}

TEST_F(FailPointTest, FailsTheTimeThatIsArmed) {
  ASSERT_OK(ArmFailPoint("log.after_sync:2=error"));
  EXPECT_OK(Operation());
  EXPECT_THAT(Operation(), StatusIs(absl::StatusCode::kInternal,
                                    ::testing::HasSubstr("log.after_sync")));
  EXPECT_OK(Operation());
  OperationThatCanNotFail();
  EXPECT_OK(Operation());
  ASSERT_OK(ArmFailPoint("log.before_sync=error"));
  EXPECT_OK(Operation());
}

TEST_F(FailPointTest, KillsTheTimeThatIsArmed) {
  EXPECT_EXIT(
      {
        ArmFailPoint("log.after_sync:3=kill").IgnoreError();
        OperationThatCanNotFail();
        OperationThatCanNotFail();
        fputs("twice", stderr);
        OperationThatCanNotFail();
        std::exit(0);
      },
      ::testing::KilledBySignal(SIGKILL), "twice");
}

TEST_F(FailPointTest, WaitsUntilItIsArmedNoLonger) {
  ASSERT_OK(ArmFailPoint("log.before_sync=error,log.after_sync:2=wait"));
  EXPECT_FALSE(ComeByFailPoint("log.before_sync").ok());
  EXPECT_OK(Operation());
  std::future<absl::Status> waiting;  // goes after what lets it end
  const absl::Cleanup go = [] { EXPECT_OK(ArmFailPoint("")); };
  waiting = std::async(std::launch::async, Operation);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(50);
  while (WaitingAtFailPoints() == 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::yield();
  }
  EXPECT_OK(Operation()) << "the third time";
  ASSERT_OK(ArmFailPoint("log.after_sync:2=wait"));
  EXPECT_EQ(WaitingAtFailPoints(), 1);
  ASSERT_OK(ArmFailPoint("log.before_sync=error"));
  EXPECT_OK(waiting.get());
  EXPECT_EQ(WaitingAtFailPoints(), 0);
}

TEST_F(FailPointTest, TheEnvironmentArmsIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // another process
  ASSERT_EQ(setenv("ATTENDANT_FAIL_POINT", "log.after_sync=kill", 1), 0);
  EXPECT_EXIT(
      {
        OperationThatCanNotFail();
        std::exit(0);
      },
      ::testing::KilledBySignal(SIGKILL), "");
  ASSERT_EQ(setenv("ATTENDANT_FAIL_POINT", "log.nowhere=kill", 1), 0);
  EXPECT_EXIT(
      {
        OperationThatCanNotFail();
        std::exit(0);
      },
      ::testing::KilledBySignal(SIGABRT), "");
  unsetenv("ATTENDANT_FAIL_POINT");
}

TEST_F(FailPointTest, ABugIsPlantedAlone) {
  ASSERT_OK(ArmFailPoint("skip_log_sync=bug"));
  EXPECT_TRUE(HasBug());
  EXPECT_OK(Operation());
  ASSERT_OK(ArmFailPoint("drop_tombstone=bug"));
  EXPECT_FALSE(HasBug());
}

TEST_F(FailPointTest, WhatIsNotKnownIsRefusedAndArmsNothing) {
  for (const absl::string_view spec :
       {"log.after_sync", "log.after_sync=", "log.after_sync=die",
        "log.after_sync:0=kill", "log.after_sync:x=kill", "=kill",
        "log.nowhere=kill", "skip_log_sync=kill", "log.after_sync=bug",
        "skip_log_sync:2=bug", "log.before_sync=error,log.nowhere=wait",
        "log.after_sync=error,log.after_sync:2=kill", ",",
        "log.before_sync=error,"}) {
    ASSERT_OK(ArmFailPoint("log.after_sync=error"));
    EXPECT_THAT(ArmFailPoint(spec),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         ::testing::HasSubstr("fail_point.h")))
        << spec;
    EXPECT_OK(Operation());
  }
}

TEST_F(FailPointTest, NamesAreDistinct) {
  std::set<std::string_view> names(std::begin(kFailPoints),
                                   std::end(kFailPoints));
  EXPECT_EQ(names.size(), std::size(kFailPoints));
  names = {std::begin(kPlantedBugs), std::end(kPlantedBugs)};
  EXPECT_EQ(names.size(), std::size(kPlantedBugs));
}

}  // namespace
}  // namespace attendant
