#include "service/connections/peer.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace attendant {
namespace {

constexpr int kNetworkBytes = 8;

std::string TextOf(int family, const void* address) {
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(family, address, text, sizeof(text)) == nullptr ? "" : text;
}

Peer PeerOfIpv4(absl::string_view host, std::uint16_t port) {
  return {std::string(host), absl::StrCat("ipv4:", host, ":", port)};
}

}  // namespace

Peer PeerAt(const sockaddr_in6& address) {
  const std::uint16_t port = ntohs(address.sin6_port);  // same offset for IPv4
  if (address.sin6_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    return PeerOfIpv4(TextOf(AF_INET, &ipv4.sin_addr), port);
  }
  std::string host = TextOf(AF_INET6, &address.sin6_addr);
  absl::string_view mapped = host;
  if (absl::ConsumePrefix(&mapped, "::ffff:") &&
      IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
    return PeerOfIpv4(mapped, port);
  }
  // gRPC escapes characters reserved in URIs, including the percent sign before
  // a link's number.
  std::string in_uri = host;
  if (address.sin6_scope_id != 0) {
    absl::StrAppend(&host, "%", address.sin6_scope_id);
    absl::StrAppend(&in_uri, "%25", address.sin6_scope_id);
  } else {
    in6_addr network = {};
    std::copy_n(address.sin6_addr.s6_addr, kNetworkBytes, network.s6_addr);
    host = absl::StrCat(TextOf(AF_INET6, &network), "/", 8 * kNetworkBytes);
  }
  return {std::move(host), absl::StrCat("ipv6:%5B", in_uri, "%5D:", port)};
}

Peer PeerOf(int connection) {
  sockaddr_in6 address = {};
  socklen_t size = sizeof(address);
  if (getpeername(connection, reinterpret_cast<sockaddr*>(&address), &size) !=
      0) {
    return {};
  }
  return PeerAt(address);
}

}  // namespace attendant
