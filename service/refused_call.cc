#include "service/refused_call.h"

#include "service/grpc_status.h"
#include "service/recorded_call.h"
#include "service/retry_delay.h"

namespace attendant {
namespace {

class RefusedCall final : public grpc::ServerUnaryReactor {
 public:
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerUnaryReactor* RefuseCall(Backend& backend, const Method& method,
                                     const absl::Status& status,
                                     grpc::CallbackServerContext& context) {
  PushBack(status, context);
  CallRecord(backend.metrics, method).End(status);
  auto* call = new RefusedCall;
  call->Finish(ToGrpcStatus(status));
  return call;
}

}  // namespace attendant
