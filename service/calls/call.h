// What unary calls and streams have in common.
#ifndef ATTENDANT_SERVICE_CALLS_CALL_H_
#define ATTENDANT_SERVICE_CALLS_CALL_H_

#include <grpc/support/time.h>
#include <grpcpp/server_context.h>

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"

namespace attendant {

// The first of the call's metadata of this key; empty: there is none.
absl::string_view MetadataOf(const grpc::ServerContextBase& context,
                             const char* key);

// The call's deadline; SteadyTime::max() if it has none.
SteadyTime DeadlineOf(const grpc::CallbackServerContext& context);

// The earliest that the caller's own deadline may be, of a call that comes at
// `now` and has this deadline here.
SteadyTime CallerDeadline(SteadyTime deadline, SteadyTime now);

// The same moment, for gRPC.
gpr_timespec ToGrpcTime(SteadyTime time);

// Runs `handle` and returns its status. An allocation that fails is
// ResourceExhausted and any other exception Internal: neither may reach gRPC.
absl::Status RunHandler(const std::function<absl::Status()>& handle);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_CALL_H_
