#include "service/connections/listen_address.h"

#include <netinet/in.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/storage/files/files.h"

namespace attendant {

absl::Status ValidateListen(absl::string_view listen, absl::string_view field) {
  const std::size_t colon = listen.rfind(':');
  std::uint32_t port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(listen.substr(colon + 1), &port) || port > 65535) {
    return InvalidField(field, absl::StrCat("\"", listen, "\""),
                        "HOST:PORT with a port of 0 to 65535");
  }
  return absl::OkStatus();
}

int PortOfAddress(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return -1;
}

int BoundPort(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return PortOfAddress(address);
}

absl::Status CannotListen(absl::string_view listen, absl::string_view what,
                          int error) {
  if (error == EMFILE || error == ENFILE) {
    return TooManyOpenFiles(absl::StrCat("can't listen on ", listen, what,
                                         ": no more files may be open"));
  }
  std::string why = std::generic_category().message(error);
  if (error == EADDRINUSE) {
    why = "another process listens there";
  } else if (error == EADDRNOTAVAIL || error == 0) {
    why = "the host is not an address of this machine";
  } else if (error == EACCES) {
    why = "ports below 1024 require privileges";
  }
  return StatusWithReason(
      absl::StatusCode::kUnavailable,
      absl::StrCat("can't listen on ", listen, what, ": ", why),
      "CANNOT_LISTEN");
}

}  // namespace attendant
