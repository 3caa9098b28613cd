// HOST:PORT, as a text.
#ifndef ATTENDANT_CORE_BASE_HOST_PORT_H_
#define ATTENDANT_CORE_BASE_HOST_PORT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// From the port of a server's gRPC to that of its HTTP, unless told otherwise.
inline constexpr int kHttpPortOffset = 1000;

// The host as it is written, brackets of IPv6 included.
absl::string_view HostOf(absl::string_view address);

// The same without brackets, as the resolver takes it.
std::string BareHostOf(absl::string_view address);

// The port; 0 if there is none.
std::uint16_t PortOf(absl::string_view address);

// The host, and this port.
std::string WithPort(absl::string_view address, int port);

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_HOST_PORT_H_
