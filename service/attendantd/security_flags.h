// Flags for the server's TLS and tokens.
#ifndef ATTENDANT_SERVICE_ATTENDANTD_SECURITY_FLAGS_H_
#define ATTENDANT_SERVICE_ATTENDANTD_SECURITY_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/status.h"
#include "service/security/security.h"

namespace attendant {

// Adds the flags and their environment variables. `options` must outlive `app`.
void AddSecurityFlags(CLI::App& app, SecurityOptions& options);

// InvalidArgument, naming the variable, if the environment variable of a file
// is set but empty; CLI11 treats such a variable as unset.
absl::Status CheckSecurityVariables();

// Returns the options as lines of a file that --config accepts.
std::string ToText(const SecurityOptions& options);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_SECURITY_FLAGS_H_
