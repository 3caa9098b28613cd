#include "client/api/error_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "core/base/status.h"

namespace attendant {
namespace {

std::string ReasonIn(const absl::Status& status) {
  return nlohmann::json::parse(ErrorJson(status))["error"]["reason"];
}

TEST(ErrorJsonTest, EveryErrorHasAReason) {
  EXPECT_EQ(ReasonIn(UsageError("no such flag")), "USAGE");
  EXPECT_EQ(ReasonIn(absl::NotFoundError("no file")), "NOT_FOUND");
  EXPECT_EQ(ReasonIn(InvalidField("deadline", "0", "a time > 0")),
            "INVALID_FIELD");
}

}  // namespace
}  // namespace attendant
