#include "service/connections/peer.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

#include "tests/support/raw_connection.h"

namespace attendant {
namespace {

using ::testing::FieldsAre;

sockaddr_in6 Ipv6(const char* host, std::uint32_t scope) {
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  EXPECT_EQ(inet_pton(AF_INET6, host, &address.sin6_addr), 1);
  address.sin6_port = htons(1234);
  address.sin6_scope_id = scope;
  return address;
}

// The same as gRPC's grpc_sockaddr_to_uri.
TEST(PeerTest, IsNamedAsGrpcNamesIt) {
  EXPECT_THAT(PeerAt(Ipv6("2001:db8::1", 0)),
              FieldsAre("2001:db8::/64", "ipv6:%5B2001:db8::1%5D:1234"));
  // A link-local address, with the interface number of this machine.
  EXPECT_THAT(PeerAt(Ipv6("fe80::1", 3)),
              FieldsAre("fe80::1%3", "ipv6:%5Bfe80::1%253%5D:1234"));
  EXPECT_THAT(PeerAt(Ipv6("::ffff:192.0.2.7", 0)),
              FieldsAre("192.0.2.7", "ipv4:192.0.2.7:1234"));

  sockaddr_in6 either = {};
  auto& ipv4 = reinterpret_cast<sockaddr_in&>(either);
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = htons(1234);
  EXPECT_EQ(inet_pton(AF_INET, "192.0.2.7", &ipv4.sin_addr), 1);
  EXPECT_THAT(PeerAt(either), FieldsAre("192.0.2.7", "ipv4:192.0.2.7:1234"));
}

// On a dual-stack port, IPv4 peers have IPv6 addresses.
TEST(PeerTest, HostsOfIpv4AreToldApartOnAPortOfBoth) {
  const int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int off = 0;
  sockaddr_in6 loopback = {};
  loopback.sin6_family = AF_INET6;
  inet_pton(AF_INET6, "::ffff:127.0.0.1", &loopback.sin6_addr);
  socklen_t size = sizeof(loopback);
  if (listener < 0 ||
      setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) != 0 ||
      bind(listener, reinterpret_cast<sockaddr*>(&loopback),
           sizeof(loopback)) != 0) {
    close(listener);
    GTEST_SKIP() << "this machine has no IPv6";
  }
  ASSERT_EQ(listen(listener, 2), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&loopback), &size);
  for (const char* host : {"127.0.0.1", "127.0.0.2"}) {
    const RawConnection guest(ntohs(loopback.sin6_port), host);
    const int accepted = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    EXPECT_EQ(PeerOf(accepted).host, host);
    close(accepted);
  }
  close(listener);
}

TEST(PeerTest, WhatIsNotConnectedHasNone) {
  EXPECT_THAT(PeerOf(-1), FieldsAre("", ""));
}

}  // namespace
}  // namespace attendant
