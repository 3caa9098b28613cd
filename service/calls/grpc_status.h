// The one place where an absl::Status becomes what a caller sees.
#ifndef ATTENDANT_SERVICE_CALLS_GRPC_STATUS_H_
#define ATTENDANT_SERVICE_CALLS_GRPC_STATUS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/rpc/status.pb.h"

namespace attendant {

// A message longer than this is cut at a character boundary: the trailing
// metadata that carries a status holds 8 KiB in all, and a status that doesn't
// fit would reach the caller as another error.
inline constexpr std::size_t kMaxStatusMessageBytes = 512;

// The same code and message, and as details (google.rpc.Status):
// - exactly one ErrorInfo, of domain "attendant". Its reason is ReasonOf, else
//   INVALID_FIELD if a field is named, else the name of the code. Its metadata
//   has DetailsOf.
// - BadRequest if FieldOf names a field, which is in ErrorInfo's metadata too.
// - RetryInfo on UNAVAILABLE and on RESOURCE_EXHAUSTED, but for the reason
//   OVER_LIMIT: what is over a limit stays over it.
google::rpc::Status ToRpcStatus(const absl::Status& status);

// The same, with the details as grpc-status-details-bin.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Tells gRPC's own retries what to make of RESOURCE_EXHAUSTED, and of
// UNAVAILABLE that somebody has to mend (kFilesNotAccessible), by the trailing
// metadata grpc-retry-pushback-ms (gRFC A6): to wait as long as RetryDelayOf
// says, or, where that is nothing, not to try again by themselves. For a call
// that ends with `status`, before it is finished.
void PushBack(const absl::Status& status, grpc::ServerContextBase& context);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_GRPC_STATUS_H_
