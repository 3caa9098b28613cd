// Converts gRPC statuses to absl::Status.
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

// The reason of gRPC's refusal of a message over the server's size limit.
inline constexpr absl::string_view kMessageTooLarge = "MESSAGE_TOO_LARGE";

// Returns the refusal of a message of `bytes` by a limit of `most_bytes`.
absl::Status MessageTooLarge(std::int64_t bytes, std::int64_t most_bytes);

// Returns the server's message size limit if `status` is a refusal that tells
// it.
std::optional<std::int64_t> MostBytesOf(const absl::Status& status);

// Returns the same code and message, with the google.rpc details: FieldOf
// returns the first field of BadRequest, ReasonOf the reason of ErrorInfo, and
// the delay of RetryInfo is appended to the message. Ignores details that can't
// be parsed. Two of gRPC's own errors are rewritten: a message over the size
// limit (kMessageTooLarge), and the answer of an HTTP server that is not a gRPC
// server (Unavailable with kOtherProtocol of client.h).
absl::Status FromGrpcStatus(const grpc::Status& status);

// Converts an outcome inside a reply, as of a batch or an import, in the same
// way.
absl::Status FromRpcStatus(const google::rpc::Status& status);

// Returns all details of a status that these functions returned; none for other
// statuses.
google::rpc::Status RpcDetailsOf(const absl::Status& status);

// Returns the retry delay of the details' RetryInfo, or nothing.
std::optional<absl::Duration> RetryInfoDelayOf(const absl::Status& status);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_GRPC_STATUS_H_
