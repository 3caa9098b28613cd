// INTERNAL means that the server broke one of its own invariants. A test in
// which a call gets it fails, unless the test breaks an invariant on purpose.
#ifndef ATTENDANT_TESTS_SERVICE_INTERNAL_ERRORS_H_
#define ATTENDANT_TESTS_SERVICE_INTERNAL_ERRORS_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "service/metrics/metric_page.h"

namespace attendant {

// Member of a fixture that runs a server. Not thread-safe.
class InternalErrors {
 public:
  // Declares that this test causes at least one INTERNAL error.
  void Expect() { expected_ = true; }

  // Checks the codes of all calls that the server has answered. Call it after
  // the calls have ended.
  void Check(const MetricPage& page) const {
    std::vector<std::string> lines;
    for (const absl::string_view line : absl::StrSplit(page.Text(), '\n')) {
      if (absl::StartsWith(line, "grpc_server_handled_total{") &&
          absl::StrContains(line, "grpc_code=\"Internal\"")) {
        lines.emplace_back(line);
      }
    }
    // The page lists only codes that some call returned.
    EXPECT_EQ(!lines.empty(), expected_) << absl::StrJoin(lines, "\n");
  }

 private:
  bool expected_ = false;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SERVICE_INTERNAL_ERRORS_H_
