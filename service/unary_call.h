// A unary call from its bytes to its reply.
#ifndef ATTENDANT_SERVICE_UNARY_CALL_H_
#define ATTENDANT_SERVICE_UNARY_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/interrupt.h"
#include "service/backend.h"
#include "service/call.h"
#include "service/grpc_status.h"
#include "service/pooled_call.h"
#include "service/wire.h"
#include "service/worker_pool.h"

namespace attendant {

template <typename Request, typename Response>
using Handler = absl::Status (*)(Backend&, const Request&, const Interrupt&,
                                 Response*);

// One call: parses, handles and serialises on a worker.
template <typename Request, typename Response>
class UnaryCall final : public PooledCall {
 public:
  UnaryCall(Backend& backend, absl::string_view method,
            Handler<Request, Response> handler,
            const grpc::CallbackServerContext& context,
            const grpc::ByteBuffer& request, grpc::ByteBuffer& response)
      : PooledCall(backend, method, context, request, response),
        handler_(handler) {}

  void Run() override {
    const absl::Status status =
        RunHandler(method_, [this] { return Handle(); });
    Finish(ToGrpcStatus(status));
  }

 private:
  absl::Status Handle() {
    // The turn may have come too late.
    absl::Status status = interrupt_.Check();
    if (!status.ok()) return status;
    auto* request = NewMessage<Request>();
    status = ParseMessage(request_, request);
    if (!status.ok()) return status;
    auto* response = NewMessage<Response>();
    status = handler_(backend_, *request, interrupt_, response);
    if (!status.ok()) return status;
    return SerialiseMessage(*response, backend_.max_message_bytes, &response_);
  }

  const Handler<Request, Response> handler_;
};

// Starts a call; `method` is a literal. The result belongs to gRPC.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* StartUnaryCall(Backend& backend, WorkerPool& pool,
                                         absl::string_view method,
                                         Handler<Request, Response> handler,
                                         grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) {
  auto* call = new UnaryCall<Request, Response>(backend, method, handler,
                                                *context, *request, *response);
  call->Enter(pool);
  return call;
}

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_UNARY_CALL_H_
