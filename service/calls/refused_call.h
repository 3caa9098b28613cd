// A unary call that is refused on arrival.
#ifndef ATTENDANT_SERVICE_CALLS_REFUSED_CALL_H_
#define ATTENDANT_SERVICE_CALLS_REFUSED_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "absl/status/status.h"
#include "service/calls/backend.h"

namespace attendant {

// Refuses a call with `status`. The call is recorded, but a shutdown does not
// wait for it, however many of them arrive. gRPC owns the result.
grpc::ServerUnaryReactor* RefuseCall(Backend& backend, const Method& method,
                                     const absl::Status& status,
                                     grpc::CallbackServerContext& context);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_REFUSED_CALL_H_
