// Converts absl::Status to what a caller sees; the only place that does.
#ifndef ATTENDANT_SERVICE_CALLS_GRPC_STATUS_H_
#define ATTENDANT_SERVICE_CALLS_GRPC_STATUS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/rpc/status.pb.h"

namespace attendant {

// Longer messages are cut at a character boundary: the trailing metadata that
// carries a status is limited to 8 KiB in all, and a status that does not fit
// would reach the caller as a different error.
inline constexpr std::size_t kMaxStatusMessageBytes = 512;

// Returns a status with the same code and message, and with these details
// (google.rpc.Status):
// - Exactly one ErrorInfo with domain "attendant". Its reason is ReasonOf; if
//   there is none, INVALID_FIELD if a field is named, otherwise the name of the
//   code. Its metadata contains DetailsOf.
// - BadRequest if FieldOf names a field, which is also in ErrorInfo's metadata.
// - RetryInfo on UNAVAILABLE and RESOURCE_EXHAUSTED, except for the reason
//   OVER_LIMIT: retrying a request that exceeds a limit cannot help.
google::rpc::Status ToRpcStatus(const absl::Status& status);

// Like ToRpcStatus, with the details in grpc-status-details-bin. A status for
// which there is no memory keeps its code alone.
grpc::Status ToGrpcStatus(const absl::Status& status) noexcept;

// Controls gRPC's automatic retries of RESOURCE_EXHAUSTED, and of UNAVAILABLE
// errors that an operator has to fix (kFilesNotAccessible), with the trailing
// metadata grpc-retry-pushback-ms (gRFC A6): clients wait for RetryDelayOf or,
// if there is none, do not retry. Does nothing if there is no memory for it.
// Call before a call that ends with `status` is finished.
void PushBack(const absl::Status& status,
              grpc::ServerContextBase& context) noexcept;

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_GRPC_STATUS_H_
