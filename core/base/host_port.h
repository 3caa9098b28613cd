// Parses and builds HOST:PORT texts.
#ifndef ATTENDANT_CORE_BASE_HOST_PORT_H_
#define ATTENDANT_CORE_BASE_HOST_PORT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// Default offset from a server's gRPC port to its HTTP port.
inline constexpr int kHttpPortOffset = 1000;

// Returns the host as written, including the brackets of an IPv6 address.
absl::string_view HostOf(absl::string_view address);

// Returns the host without brackets, as the resolver takes it.
std::string BareHostOf(absl::string_view address);

// Returns the port, or 0 if there is none.
std::uint16_t PortOf(absl::string_view address);

// Returns the host of `address` with `port`.
std::string WithPort(absl::string_view address, int port);

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_HOST_PORT_H_
