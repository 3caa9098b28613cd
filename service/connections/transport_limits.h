// What connections may take of the server, whatever comes over them.
#ifndef ATTENDANT_SERVICE_CONNECTIONS_TRANSPORT_LIMITS_H_
#define ATTENDANT_SERVICE_CONNECTIONS_TRANSPORT_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace grpc {
class ServerBuilder;
}  // namespace grpc

namespace attendant {

inline constexpr int kMinMetadataBytes = 1024;
inline constexpr int kMaxMetadataBytes = 8192;  // gRPC's own default

struct TransportLimits {
  // Connections at a time, at least 1; more are refused. No more than a third
  // of the file descriptors that the process may have, whatever stands here.
  int max_connection_count = 5000;
  // Calls under way on a connection, at least 1; more wait at the client.
  int max_stream_count = 1000;
  // A connection without a call for so long is closed; clients connect again
  // when they need to. An import that brings no message for so long is
  // cancelled. At least 1.
  int idle_seconds = 600;
  // A connection that is so old is told to go away: clients connect again by
  // themselves, and send what is new over the new one. At least 1.
  int age_seconds = 3600;
  // What calls that are under way on it have then, before they are cancelled
  // with the connection. At least 1.
  int age_grace_seconds = 6 * 3600;
  // A call whose client does not take a reply for so long, and a second more
  // for each 64 KiB of it, is cancelled; a connection whose calls do not come
  // for as long is ended (CallWatch). At least 1.
  int stall_seconds = 60;
  // Memory of replies that clients have not taken yet, of all together, in
  // bytes; at least four messages of the largest size. Above it the calls that
  // have waited longest are cancelled.
  std::int64_t reply_memory_bytes = std::int64_t{512} << 20;
  // Memory of requests on their way in, of all connections together, in bytes;
  // at least four messages of the largest size. Above it gRPC ends calls, with
  // RESOURCE_EXHAUSTED or CANCELLED, and takes no connections.
  std::int64_t request_memory_bytes = std::int64_t{512} << 20;
  // Metadata of a call, as HTTP/2 counts them: names, values and 32 bytes for
  // each. More are RESOURCE_EXHAUSTED, by gRPC. In [kMinMetadataBytes,
  // kMaxMetadataBytes]: what gRPC sends by itself has to fit.
  int metadata_bytes = kMaxMetadataBytes;
};

// InvalidArgument naming a limit that is out of range.
absl::Status ValidateTransportLimits(const TransportLimits& limits,
                                     std::int64_t max_message_bytes);

// max_connection_count, or what the process has file descriptors for; the log
// says so if that is less.
int ConnectionsWithinReach(const TransportLimits& limits);

// Sets all but the number of connections. Pings more often than every 10 s
// without calls end a connection; one whose client does not answer a ping of
// ours for 20 s, after a minute of silence, is closed.
void SetTransportLimits(const TransportLimits& limits,
                        grpc::ServerBuilder& builder);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_TRANSPORT_LIMITS_H_
