// What gRPC counts of each connection.
#ifndef ATTENDANT_SERVICE_CONNECTIONS_GRPC_SOCKETS_H_
#define ATTENDANT_SERVICE_CONNECTIONS_GRPC_SOCKETS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace attendant {

struct GrpcSocket {
  std::string peer;  // as gRPC names it
  // Calls whose headers have come and that have not ended, whether the server
  // was told of them or not.
  std::int64_t open_call_count = 0;
  std::int64_t message_count = 0;  // came whole, of all calls so far
};

// Of the connections that gRPC's servers in this process have at a port. From
// channelz, which tells it as text: some 20 us a connection, so not for each
// call. Thread-safe.
std::vector<GrpcSocket> ReadGrpcSockets(int port);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_GRPC_SOCKETS_H_
