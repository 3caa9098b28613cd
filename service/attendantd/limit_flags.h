// Flags for the server's limits.
#ifndef ATTENDANT_SERVICE_ATTENDANTD_LIMIT_FLAGS_H_
#define ATTENDANT_SERVICE_ATTENDANTD_LIMIT_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "service/calls/request_limits.h"
#include "service/connections/transport_limits.h"

namespace attendant {

// Adds the flags and their environment variables. `limits` must outlive `app`.
void AddLimitFlags(CLI::App& app, TransportLimits& limits);
void AddLimitFlags(CLI::App& app, RequestLimits& limits);

// Returns the limits as lines of a file that --config accepts.
std::string ToText(const TransportLimits& limits);
std::string ToText(const RequestLimits& limits);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_LIMIT_FLAGS_H_
