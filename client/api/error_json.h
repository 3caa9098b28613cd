// Errors as JSON, for --json.
#ifndef ATTENDANT_CLIENT_API_ERROR_JSON_H_
#define ATTENDANT_CLIENT_API_ERROR_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Returns the error of a wrong command line: InvalidArgument with this reason.
inline constexpr absl::string_view kUsageReason = "USAGE";
absl::Status UsageError(absl::string_view message);

// True if the command line has --json. Works on one that can't be parsed.
bool AsksForJson(int argc, const char* const* argv);

// Returns {"error": {"code", "message", "reason", "metadata", "retryDelay"}}
// with a line end. `code` is the code's name; `reason` is the status's reason
// or, if it has none, INVALID_FIELD if it names a field, otherwise the code's
// name. `metadata` is that of google.rpc.ErrorInfo, or empty; `retryDelay` is
// that of google.rpc.RetryInfo, and is left out without one.
std::string ErrorJson(const absl::Status& status);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_ERROR_JSON_H_
