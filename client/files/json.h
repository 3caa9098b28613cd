// Parses JSON from untrusted files.
#ifndef ATTENDANT_CLIENT_FILES_JSON_H_
#define ATTENDANT_CLIENT_FILES_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace attendant {

// The most nested levels of objects and arrays. The library copies and prints
// values recursively, so a deeper value could overflow the stack.
inline constexpr int kMaxJsonDepth = 32;

// Parses one JSON object. If it has a name twice, keeps the last value.
// InvalidArgument if the text is not one JSON object or is nested deeper than
// kMaxJsonDepth levels.
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text);

// As ParseJsonObject, but InvalidArgument if an object at any depth has a name
// twice.
absl::StatusOr<nlohmann::json> ParseJsonObjectWithUniqueNames(
    absl::string_view text);

// Returns the object's text of this name, or "" if it has none.
std::string TextOf(const nlohmann::json& object, absl::string_view name);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_JSON_H_
