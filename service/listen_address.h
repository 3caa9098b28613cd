// HOST:PORT, where a server listens.
#ifndef ATTENDANT_SERVICE_LISTEN_ADDRESS_H_
#define ATTENDANT_SERVICE_LISTEN_ADDRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// InvalidArgument naming `field` unless it is HOST:PORT with a port that fits.
absl::Status ValidateListen(absl::string_view listen,
                            absl::string_view field = "listen");

// The host of HOST:PORT as it is written there, brackets of IPv6 included.
absl::string_view HostOf(absl::string_view listen);

// The same without brackets, as the resolver takes it.
std::string BareHostOf(absl::string_view listen);

// The port of a valid HOST:PORT.
std::uint16_t PortOf(absl::string_view listen);

// The port that a socket is bound to.
int BoundPort(int socket);

// Unavailable, with the reason CANNOT_LISTEN, and `error` of errno(3); `what`
// says for what, or nothing.
absl::Status CannotListen(absl::string_view listen, absl::string_view what,
                          int error);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_LISTEN_ADDRESS_H_
