#include "tests/integration/http2_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"

namespace attendant {
namespace {

std::string BigEndian(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) {
    text.push_back(static_cast<char>(value >> (8 * i)));
  }
  return text;
}

// A literal field without indexing (RFC 7541, sec. 6.2.2), of short texts.
std::string Field(absl::string_view name, absl::string_view value) {
  const auto text = [](absl::string_view of) {
    return absl::StrCat(BigEndian(static_cast<std::uint32_t>(of.size()), 1),
                        of);
  };
  return absl::StrCat(BigEndian(0, 1), text(name), text(value));
}

// Milliseconds until then, for poll.
int Left(SteadyTime end) {
  return static_cast<int>(
      std::max<std::int64_t>(0, absl::ToInt64Milliseconds(TimeUntil(end))));
}

}  // namespace

std::string Frame(FrameType type, std::uint8_t flags, std::uint32_t stream,
                  absl::string_view payload) {
  return absl::StrCat(BigEndian(static_cast<std::uint32_t>(payload.size()), 3),
                      BigEndian(static_cast<std::uint8_t>(type), 1),
                      BigEndian(flags, 1), BigEndian(stream, 4), payload);
}

std::string Hello(std::uint32_t window) {
  constexpr std::uint32_t kInitialWindowSize = 4;
  return absl::StrCat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                      Frame(FrameType::kSettings, 0, 0,
                            absl::StrCat(BigEndian(kInitialWindowSize, 2),
                                         BigEndian(window, 4))));
}

std::string BeginCall(std::uint32_t stream, absl::string_view path) {
  return Frame(
      FrameType::kHeaders, kEndHeaders, stream,
      absl::StrCat(Field(":method", "POST"), Field(":scheme", "http"),
                   Field(":path", path), Field(":authority", "localhost"),
                   Field("te", "trailers"),
                   Field("content-type", "application/grpc")));
}

std::string MessageFrame(std::uint32_t stream, std::uint8_t flags,
                         absl::string_view message) {
  return Frame(
      FrameType::kData, flags, stream,
      absl::StrCat(BigEndian(0, 1),
                   BigEndian(static_cast<std::uint32_t>(message.size()), 4),
                   message));
}

RawConnection::RawConnection(int port)
    : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
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
  pollfd ready = {.fd = socket_, .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, Left(SteadyAfter(timeout))) <= 0) return "";
  std::array<char, 65536> buffer;
  const ssize_t size = recv(socket_, buffer.data(), buffer.size(), 0);
  return size <= 0 ? ""
                   : std::string(buffer.data(), static_cast<std::size_t>(size));
}

bool RawConnection::AwaitClose(absl::Duration timeout, std::string* received) {
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
