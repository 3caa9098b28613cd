// gRPC's own counters for each connection.
#ifndef ATTENDANT_SERVICE_CONNECTIONS_GRPC_SOCKETS_H_
#define ATTENDANT_SERVICE_CONNECTIONS_GRPC_SOCKETS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace attendant {

struct GrpcSocket {
  std::string peer;  // as gRPC names it
  // Calls whose headers have arrived and that have not ended, whether or not
  // the server was told of them.
  std::int64_t open_call_count = 0;
  std::int64_t message_count = 0;  // complete messages, over all calls so far
};

// Returns the connections that gRPC servers of this process have on `port`.
// Reads channelz, which reports them as text: about 20 us per connection, so
// not for every call. Thread-safe.
std::vector<GrpcSocket> ReadGrpcSockets(int port);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_GRPC_SOCKETS_H_
