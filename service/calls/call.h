// Functions that unary calls and streams share.
#ifndef ATTENDANT_SERVICE_CALLS_CALL_H_
#define ATTENDANT_SERVICE_CALLS_CALL_H_

#include <grpc/support/time.h>
#include <grpcpp/server_context.h>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"

namespace attendant {

// Returns the first metadata value with this key; empty if there is none.
absl::string_view MetadataOf(const grpc::ServerContextBase& context,
                             const char* key);

// Returns the call's deadline; SteadyTime::max() if it has none.
SteadyTime DeadlineOf(const grpc::CallbackServerContext& context);

// Returns the earliest time that the caller's own deadline may have, for a call
// that arrives at `now` and has `deadline` here.
SteadyTime CallerDeadline(SteadyTime deadline, SteadyTime now);

// Converts `time` for gRPC.
gpr_timespec ToGrpcTime(SteadyTime time);

// Runs `handle` and returns its status. Converts a failed allocation to
// OutOfMemory and any other exception to Internal, since neither may reach
// gRPC.
absl::Status RunHandler(absl::FunctionRef<absl::Status()> handle) noexcept;

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_CALL_H_
