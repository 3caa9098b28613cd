// Flags of a test program that has a long form:
//   --seed=N   seed of the first history
//   --count=N  number of histories; each uses the next seed
#ifndef ATTENDANT_TESTS_DURABILITY_FLAGS_H_
#define ATTENDANT_TESTS_DURABILITY_FLAGS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/support/sanitized.h"

namespace attendant {

// Returns the value of the flag, or `otherwise` if it is not given.
inline std::int64_t Flag(absl::string_view name, std::int64_t otherwise) {
  const std::string prefix = absl::StrCat("--", name, "=");
  for (const absl::string_view argument : ::testing::internal::GetArgvs()) {
    std::int64_t value = 0;
    if (argument.substr(0, prefix.size()) == prefix &&
        absl::SimpleAtoi(argument.substr(prefix.size()), &value)) {
      return value;
    }
  }
  return otherwise;
}

// Scales `count` for the short form: sanitizers get a fifth of it, which takes
// them about as long.
inline constexpr std::int64_t Short(std::int64_t count) {
  return kSanitized ? (count + 4) / 5 : count;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_DURABILITY_FLAGS_H_
