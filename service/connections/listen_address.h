// HOST:PORT, where a server listens.
#ifndef ATTENDANT_SERVICE_CONNECTIONS_LISTEN_ADDRESS_H_
#define ATTENDANT_SERVICE_CONNECTIONS_LISTEN_ADDRESS_H_

#include <sys/socket.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// InvalidArgument naming `field` unless it is HOST:PORT with a port that fits.
absl::Status ValidateListen(absl::string_view listen,
                            absl::string_view field = "listen");

// The port of a TCP address, or -1.
int PortOfAddress(const sockaddr_storage& address);

// The port that a socket is bound to, or -1.
int BoundPort(int socket);

// Unavailable, with the reason CANNOT_LISTEN, and `error` of errno(3), or as
// TooManyOpenFiles; `what` says for what, or nothing.
absl::Status CannotListen(absl::string_view listen, absl::string_view what,
                          int error);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_LISTEN_ADDRESS_H_
