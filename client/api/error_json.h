// What fails under --json.
#ifndef ATTENDANT_CLIENT_API_ERROR_JSON_H_
#define ATTENDANT_CLIENT_API_ERROR_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// What is wrong with a command line, with this reason.
inline constexpr absl::string_view kUsageReason = "USAGE";
absl::Status UsageError(absl::string_view message);

// Whether a command line that could not be read to its end asks for --json.
bool AsksForJson(int argc, const char* const* argv);

// {"error": {"code", "message", "reason", "metadata", "retryDelay"}}, with a
// line end: the code's name, the message, the reason (of what has none
// INVALID_FIELD where a field is at fault, else the code's name), and of
// google.rpc's details the metadata of ErrorInfo, empty where there is none,
// and the delay of RetryInfo, left out where there is none.
std::string ErrorJson(const absl::Status& status);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_ERROR_JSON_H_
