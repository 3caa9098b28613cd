// JSON from files that nobody vouches for.
#ifndef ATTENDANT_CLIENT_FILES_JSON_H_
#define ATTENDANT_CLIENT_FILES_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace attendant {

// Levels of objects and arrays that a text may have. The library copies and
// prints a value by recursion, so that a deep one would overflow the stack.
inline constexpr int kMaxJsonDepth = 32;

// InvalidArgument for a text that is not one JSON object, or is nested more
// than kMaxJsonDepth levels deep. Of a name that an object has twice the last
// counts.
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text);

// InvalidArgument also for an object that has a name twice, at any depth.
absl::StatusOr<nlohmann::json> ParseJsonObjectWithUniqueNames(
    absl::string_view text);

// The text that an object has under a name; empty if there is none.
std::string TextOf(const nlohmann::json& object, absl::string_view name);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_JSON_H_
