// What a server's refusal means to the caller of the client.
#ifndef ATTENDANT_CLIENT_API_GRPC_STATUS_H_
#define ATTENDANT_CLIENT_API_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"

namespace attendant {

// The reason of a refusal by gRPC itself: the server takes no message so large.
inline constexpr absl::string_view kMessageTooLarge = "MESSAGE_TOO_LARGE";

// A refusal of that reason: a message of so many bytes where so many are taken.
absl::Status MessageTooLarge(std::int64_t bytes, std::int64_t most_bytes);

// The bytes that the server takes in a message, where a refusal says so.
std::optional<std::int64_t> MostBytesOf(const absl::Status& status);

// The same code and message, but for kMessageTooLarge, whose message says more.
// Of the google.rpc details, the first field of BadRequest comes back from
// FieldOf, the reason of ErrorInfo from ReasonOf, and the delay of RetryInfo is
// appended to the message. Details that can't be read are left out of these.
absl::Status FromGrpcStatus(const grpc::Status& status);

// The same for an outcome inside a reply, as of a batch or an import.
absl::Status FromRpcStatus(const google::rpc::Status& status);

// All details that a status of those functions came with; none of another.
google::rpc::Status RpcDetailsOf(const absl::Status& status);

// When to try again, as their RetryInfo says it; nothing if it does not.
std::optional<absl::Duration> RetryInfoDelayOf(const absl::Status& status);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_GRPC_STATUS_H_
