#include "service/connections/transport_limits.h"

#include <grpc/grpc.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "service/log/log.h"

namespace attendant {
namespace {

constexpr absl::Duration kPingInterval = absl::Minutes(1);
constexpr absl::Duration kPingTimeout = absl::Seconds(20);
constexpr absl::Duration kMinPingIntervalOfClients = absl::Seconds(10);
// For the TLS handshake and the initial HTTP/2 frames.
constexpr absl::Duration kHandshakeTime = absl::Seconds(10);
// A connection takes two, and the data directory needs some.
constexpr int kDescriptorsPerConnection = 3;
// Maximum size of a read, instead of gRPC's 4 MiB: gRPC creates all calls in a
// read before it processes the first.
constexpr int kMaxReadBytes = 64 << 10;
// For gRPC's reflection, the only synchronous service: each of its streams
// occupies a thread for as long as its client keeps it open. Further streams
// get RESOURCE_EXHAUSTED.
constexpr int kMaxSynchronousThreads = 16;
// Number of maximum-size messages that must fit into a message memory.
constexpr int kMinMessages = 4;

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(std::min<std::int64_t>(
      absl::ToInt64Milliseconds(duration), std::numeric_limits<int>::max()));
}

absl::Status CheckPositive(absl::string_view name, int value) {
  if (value >= 1) return absl::OkStatus();
  return InvalidField(name, absl::StrCat(value), "1 or more");
}

// Checks a limit on the memory of messages.
absl::Status CheckMemory(absl::string_view name, std::int64_t bytes,
                         std::int64_t least) {
  if (bytes >= least) return absl::OkStatus();
  return InvalidField(name, absl::StrCat(bytes),
                      absl::StrCat(least, " or more: ", kMinMessages,
                                   " of the largest messages"));
}

}  // namespace

absl::Status ValidateTransportLimits(const TransportLimits& limits,
                                     std::int64_t max_message_bytes) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckPositive("max-connections", limits.max_connection_count));
  ATTENDANT_RETURN_IF_ERROR(
      CheckPositive("max-streams", limits.max_stream_count));
  ATTENDANT_RETURN_IF_ERROR(CheckPositive("idle-seconds", limits.idle_seconds));
  ATTENDANT_RETURN_IF_ERROR(
      CheckPositive("connection-age-seconds", limits.age_seconds));
  ATTENDANT_RETURN_IF_ERROR(
      CheckPositive("connection-grace-seconds", limits.age_grace_seconds));
  ATTENDANT_RETURN_IF_ERROR(
      CheckPositive("stall-seconds", limits.stall_seconds));
  if (limits.metadata_bytes < kMinMetadataBytes ||
      limits.metadata_bytes > kMaxMetadataBytes) {
    return InvalidField(
        "max-metadata-bytes", absl::StrCat(limits.metadata_bytes),
        absl::StrCat(kMinMetadataBytes, " to ", kMaxMetadataBytes));
  }
  const std::int64_t least = kMinMessages * max_message_bytes;
  ATTENDANT_RETURN_IF_ERROR(
      CheckMemory("request-memory", limits.request_memory_bytes, least));
  return CheckMemory("reply-memory", limits.reply_memory_bytes, least);
}

int ConnectionsWithinReach(const TransportLimits& limits) {
  rlimit descriptors = {};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) {
    return limits.max_connection_count;
  }
  const auto reach = static_cast<int>(
      std::min<rlim_t>(descriptors.rlim_cur / kDescriptorsPerConnection,
                       std::numeric_limits<int>::max()));
  if (reach >= limits.max_connection_count) return limits.max_connection_count;
  LogEvent(
      LogLevel::kWarning, "fewer_connections",
      {{"max_connections", LogValue::Json(absl::StrCat(reach))},
       {"asked_for", LogValue::Json(absl::StrCat(limits.max_connection_count))},
       {"what_now",
        "raise the limit on open files (ulimit -n, LimitNOFILE) to at least "
        "three times --max-connections"}});
  return std::max(1, reach);
}

void SetTransportLimits(const TransportLimits& limits,
                        grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             limits.max_stream_count);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             Milliseconds(absl::Seconds(limits.idle_seconds)));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                             Milliseconds(absl::Seconds(limits.age_seconds)));
  builder.AddChannelArgument(
      GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
      Milliseconds(absl::Seconds(limits.age_grace_seconds)));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             Milliseconds(kHandshakeTime));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             Milliseconds(kPingInterval));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             Milliseconds(kPingTimeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // For the server's pings, which must also be sent on a connection without
  // data.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      Milliseconds(kMinPingIntervalOfClients));
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMaxReadBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, limits.metadata_bytes);
  grpc::ResourceQuota quota("requests");
  quota.Resize(static_cast<std::size_t>(limits.request_memory_bytes));
  quota.SetMaxThreads(kMaxSynchronousThreads);
  builder.SetResourceQuota(quota);
}

}  // namespace attendant
