#include "service/attendantd/process_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/support/no_more_threads.h"

namespace attendant {
namespace {

// In a process of its own, where gRPC has no threads to start.
TEST(ProcessSetupDeathTest, WantsAThreadForEachWorker) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const NoMoreThreads none;
        const std::string message(PrepareProcess(1000).message());
        std::fputs(message.c_str(), stderr);
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "threads: got 0, want 1060 at least");
}

}  // namespace
}  // namespace attendant
