// The other end of a connection.
#ifndef ATTENDANT_SERVICE_CONNECTIONS_PEER_H_
#define ATTENDANT_SERVICE_CONNECTIONS_PEER_H_

#include <netinet/in.h>

#include <string>

namespace attendant {

// Empty of a connection whose peer has gone.
struct Peer {
  // Its address, without the port; of IPv6 the network of 64 bits that a host
  // has for itself, or on a link the host and the link.
  std::string host;
  std::string name;  // as gRPC names it
};

// `address` is of IPv4 or IPv6; one of IPv4 that is mapped into IPv6 is IPv4's.
Peer PeerAt(const sockaddr_in6& address);

// Of a TCP connection.
Peer PeerOf(int connection);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_PEER_H_
