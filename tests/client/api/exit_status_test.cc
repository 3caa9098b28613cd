#include "client/api/exit_status.h"

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "client/api/error_json.h"
#include "core/base/status.h"

namespace attendant {
namespace {

TEST(ExitStatusTest, SaysWhoseFaultItIs) {
  EXPECT_EQ(ExitStatusOf(absl::OkStatus()), kExitOk);
  EXPECT_EQ(ExitStatusOf(UsageError("no such flag")), kExitUsage);
  EXPECT_EQ(ExitStatusOf(absl::InvalidArgumentError("a row")), kExitRefused);
  EXPECT_EQ(ExitStatusOf(absl::UnavailableError("no server")),
            kExitUnreachable);
  // A server that answers.
  EXPECT_EQ(ExitStatusOf(StatusWithReason(absl::StatusCode::kUnavailable,
                                          "read-only", kFilesNotAccessible)),
            kExitRefused);
}

}  // namespace
}  // namespace attendant
