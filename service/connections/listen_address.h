// HOST:PORT, the address a server listens on.
#ifndef ATTENDANT_SERVICE_CONNECTIONS_LISTEN_ADDRESS_H_
#define ATTENDANT_SERVICE_CONNECTIONS_LISTEN_ADDRESS_H_

#include <sys/socket.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// InvalidArgument naming `field` unless `listen` is HOST:PORT with a valid
// port.
absl::Status ValidateListen(absl::string_view listen,
                            absl::string_view field = "listen");

// Returns the port of a TCP address, or -1.
int PortOfAddress(const sockaddr_storage& address);

// Returns the port that a socket is bound to, or -1.
int BoundPort(int socket);

// Returns Unavailable with the reason CANNOT_LISTEN, and with `error`, an
// errno(3); or TooManyOpenFiles. `what` names the failed step and may be empty.
absl::Status CannotListen(absl::string_view listen, absl::string_view what,
                          int error);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_LISTEN_ADDRESS_H_
