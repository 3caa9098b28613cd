// Limits on what connections may consume, whatever is sent over them.
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
  // Maximum number of connections, >= 1; further ones are refused. Capped at a
  // third of the file descriptors that the process may have.
  int max_connection_count = 5000;
  // Maximum number of concurrent calls on a connection, >= 1; further ones wait
  // at the client.
  int max_stream_count = 1000;
  // A connection without calls for this long is closed; clients reconnect on
  // demand. An import without a message for this long is cancelled. >= 1.
  int idle_seconds = 600;
  // A connection of this age is told to go away; clients reconnect by
  // themselves and send new calls over the new connection. >= 1.
  int age_seconds = 3600;
  // How long calls in progress on such a connection may continue before they
  // are cancelled with it. >= 1.
  int age_grace_seconds = 6 * 3600;
  // A call whose client does not take a reply within this time plus 1 s per 64
  // KiB of it is cancelled; a connection whose calls do not arrive within that
  // time is ended (CallWatch). >= 1.
  int stall_seconds = 60;
  // Maximum memory of replies that clients have not taken yet, in bytes, over
  // all calls; at least four messages of the maximum size. Above it, the calls
  // that have waited longest are cancelled.
  std::int64_t reply_memory_bytes = std::int64_t{512} << 20;
  // Maximum memory of requests being received, in bytes, over all connections;
  // at least four messages of the maximum size. Above it, gRPC ends calls with
  // RESOURCE_EXHAUSTED or CANCELLED and accepts no connections.
  std::int64_t request_memory_bytes = std::int64_t{512} << 20;
  // Maximum size of a call's metadata as HTTP/2 counts it: names, values and 32
  // bytes per entry; gRPC answers larger ones with RESOURCE_EXHAUSTED. In
  // [kMinMetadataBytes, kMaxMetadataBytes], so that the metadata gRPC itself
  // sends fits.
  int metadata_bytes = kMaxMetadataBytes;
};

// InvalidArgument naming the first limit that is out of range.
absl::Status ValidateTransportLimits(const TransportLimits& limits,
                                     std::int64_t max_message_bytes);

// Returns max_connection_count, capped by the file descriptors of the process;
// logs a warning if it is capped.
int ConnectionsWithinReach(const TransportLimits& limits);

// Sets all limits except the number of connections. Also: a client that pings
// more often than every 10 s without calls loses its connection, and one that
// does not answer the server's ping, sent after a minute of silence, within 20
// s is disconnected.
void SetTransportLimits(const TransportLimits& limits,
                        grpc::ServerBuilder& builder);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_TRANSPORT_LIMITS_H_
