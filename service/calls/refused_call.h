// A unary call that ends where it begins.
#ifndef ATTENDANT_SERVICE_CALLS_REFUSED_CALL_H_
#define ATTENDANT_SERVICE_CALLS_REFUSED_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "absl/status/status.h"
#include "service/calls/backend.h"

namespace attendant {

// Refuses a call with `status`. It is recorded, but it is none of those that a
// shutdown waits for, however many of them come. The result belongs to gRPC.
grpc::ServerUnaryReactor* RefuseCall(Backend& backend, const Method& method,
                                     const absl::Status& status,
                                     grpc::CallbackServerContext& context);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_REFUSED_CALL_H_
