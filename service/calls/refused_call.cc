#include "service/calls/refused_call.h"

#include <vector>

#include "service/calls/call_record.h"
#include "service/calls/grpc_status.h"
#include "service/log/log.h"

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
  // First, because it may fail.
  auto* call = new RefusedCall;
  PushBack(status, context);
  CallRecord(backend.records, method, context)
      .End(status, [](std::vector<LogField>&) {});
  call->Finish(ToGrpcStatus(status));
  return call;
}

}  // namespace attendant
