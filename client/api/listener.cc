#include "client/api/listener.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/host_port.h"

namespace attendant {
namespace {

constexpr int kPatienceMs = 1000;

bool Connects(const addrinfo& at) {
  const int fd =
      socket(at.ai_family, at.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  bool connected = connect(fd, at.ai_addr, at.ai_addrlen) == 0;
  if (!connected && errno == EINPROGRESS) {
    pollfd wait = {.fd = fd, .events = POLLOUT, .revents = 0};
    int error = 0;
    socklen_t size = sizeof(error);
    connected = poll(&wait, 1, kPatienceMs) == 1 &&
                getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
                error == 0;
  }
  close(fd);
  return connected;
}

}  // namespace

bool SomethingListensAt(const std::string& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(BareHostOf(address).c_str(),
                  absl::StrCat(PortOf(address)).c_str(), &hints, &found) != 0) {
    return false;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found,
                                                               &freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (Connects(*at)) return true;
  }
  return false;
}

}  // namespace attendant
