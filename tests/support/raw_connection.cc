#include "tests/support/raw_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "core/base/clock.h"

namespace attendant {
namespace {

// Milliseconds until `end`, for poll.
int Left(SteadyTime end) {
  return static_cast<int>(
      std::max<std::int64_t>(0, absl::ToInt64Milliseconds(TimeUntil(end))));
}

}  // namespace

RawConnection::RawConnection(int port, const char* source)
    : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in own = {};
  own.sin_family = AF_INET;
  if (source != nullptr && inet_pton(AF_INET, source, &own.sin_addr) == 1) {
    // On success a port is chosen; after a failure connect reports it.
    (void)bind(socket_, reinterpret_cast<sockaddr*>(&own), sizeof(own));
  }
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (connect(socket_, reinterpret_cast<sockaddr*>(&address),
              sizeof(address)) != 0) {
    close(socket_);
    socket_ = -1;
  }
}

RawConnection::~RawConnection() {
  if (socket_ >= 0) close(socket_);
}

RawConnection::RawConnection(RawConnection&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)) {}

bool RawConnection::Send(absl::string_view bytes, absl::Duration timeout) {
  if (socket_ < 0) return false;
  const SteadyTime end = SteadyAfter(timeout);
  while (!bytes.empty()) {
    pollfd ready = {.fd = socket_, .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, Left(end)) <= 0) return false;
    const ssize_t sent =
        send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string RawConnection::Receive(absl::Duration timeout) {
  if (socket_ < 0) return "";
  pollfd ready = {.fd = socket_, .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, Left(SteadyAfter(timeout))) <= 0) return "";
  std::array<char, 65536> buffer;
  const ssize_t size = recv(socket_, buffer.data(), buffer.size(), 0);
  return size <= 0 ? ""
                   : std::string(buffer.data(), static_cast<std::size_t>(size));
}

bool RawConnection::AwaitClose(absl::Duration timeout, std::string* received) {
  if (socket_ < 0) return true;
  const SteadyTime end = SteadyAfter(timeout);
  while (TimeUntil(end) > absl::ZeroDuration()) {
    pollfd ready = {.fd = socket_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, Left(end)) <= 0) return false;
    const std::string part = Receive();
    if (part.empty()) return true;
    if (received != nullptr) received->append(part);
  }
  return false;
}

}  // namespace attendant
