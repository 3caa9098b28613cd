// The flags of a server's TLS and tokens.
#ifndef ATTENDANT_SERVICE_ATTENDANTD_SECURITY_FLAGS_H_
#define ATTENDANT_SERVICE_ATTENDANTD_SECURITY_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/status.h"
#include "service/security/security.h"

namespace attendant {

// Adds the flags, with their environment variables. `options` must outlive
// `app`.
void AddSecurityFlags(CLI::App& app, SecurityOptions& options);

// InvalidArgument naming an environment variable of a file that is set to
// nothing, which CLI11 takes for one that is not set.
absl::Status CheckSecurityVariables();

// The options as lines of a file that --config accepts.
std::string ToText(const SecurityOptions& options);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_SECURITY_FLAGS_H_
