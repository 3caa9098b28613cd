// INTERNAL says that an invariant of ours is broken: no test may see it and
// pass, unless it breaks one on purpose.
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

// A part of a test's fixture that has a server. Not thread-safe.
class InternalErrors {
 public:
  // Of this test, which causes one or more.
  void Expect() { expected_ = true; }

  // When the calls have ended: of all that the server has answered.
  void Check(const MetricPage& page) const {
    std::vector<std::string> lines;
    for (const absl::string_view line : absl::StrSplit(page.Text(), '\n')) {
      if (absl::StartsWith(line, "grpc_server_handled_total{") &&
          absl::StrContains(line, "grpc_code=\"Internal\"")) {
        lines.emplace_back(line);
      }
    }
    // A code that no call had is not on the page.
    EXPECT_EQ(!lines.empty(), expected_) << absl::StrJoin(lines, "\n");
  }

 private:
  bool expected_ = false;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SERVICE_INTERNAL_ERRORS_H_
