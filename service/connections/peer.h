// The remote end of a connection.
#ifndef ATTENDANT_SERVICE_CONNECTIONS_PEER_H_
#define ATTENDANT_SERVICE_CONNECTIONS_PEER_H_

#include <netinet/in.h>

#include <string>

namespace attendant {

// Empty for a connection whose peer has gone.
struct Peer {
  // The address without the port. For IPv6, the 64-bit network that a host has
  // to itself; for a link-local address, the host and the link.
  std::string host;
  std::string name;  // as gRPC names it
};

// `address` is an IPv4 or IPv6 address; an IPv4 address mapped into IPv6 is
// treated as IPv4.
Peer PeerAt(const sockaddr_in6& address);

// Returns the peer of a TCP connection.
Peer PeerOf(int connection);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_PEER_H_
