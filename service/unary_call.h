// A unary call from its bytes to its reply.
#ifndef ATTENDANT_SERVICE_UNARY_CALL_H_
#define ATTENDANT_SERVICE_UNARY_CALL_H_

#include <google/protobuf/arena.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/interrupt.h"
#include "service/backend.h"
#include "service/call.h"
#include "service/grpc_status.h"
#include "service/wire.h"
#include "service/worker_pool.h"

namespace attendant {

template <typename Request, typename Response>
using Handler = absl::Status (*)(Backend&, const Request&, const Interrupt&,
                                 Response*);

// One call: waits in a worker pool for its turn, then parses, handles and
// serialises there. Both messages live on one arena. Lives from StartUnaryCall
// until gRPC is done with it; after Finish it may be gone at any moment.
template <typename Request, typename Response>
class UnaryCall final : public grpc::ServerUnaryReactor, public Work {
 public:
  UnaryCall(Backend& backend, absl::string_view method,
            Handler<Request, Response> handler,
            const grpc::CallbackServerContext& context,
            const grpc::ByteBuffer& request, grpc::ByteBuffer& response)
      : backend_(backend),
        method_(method),
        handler_(handler),
        request_(request),
        response_(response),
        arena_(initial_block_, sizeof(initial_block_)) {
    backend_.calls.Begin();
    interrupt_.deadline = DeadlineOf(context);
    interrupt_.cancelled = &cancelled_;
  }

  void Run() override {
    const absl::Status status =
        RunHandler(method_, [this] { return Handle(); });
    Finish(ToGrpcStatus(status));
  }

  void OnCancel() override { cancelled_.store(true); }
  void OnDone() override {
    CallCount& calls = backend_.calls;
    delete this;
    calls.End();
  }

 private:
  absl::Status Handle() {
    // The turn may have come too late.
    absl::Status status = interrupt_.Check();
    if (!status.ok()) return status;
    auto* request = google::protobuf::Arena::CreateMessage<Request>(&arena_);
    status = ParseMessage(request_, request);
    if (!status.ok()) return status;
    auto* response = google::protobuf::Arena::CreateMessage<Response>(&arena_);
    status = handler_(backend_, *request, interrupt_, response);
    if (!status.ok()) return status;
    return SerialiseMessage(*response, backend_.max_message_bytes, &response_);
  }

  Backend& backend_;
  const absl::string_view method_;
  const Handler<Request, Response> handler_;
  const grpc::ByteBuffer& request_;
  grpc::ByteBuffer& response_;
  Interrupt interrupt_;
  std::atomic<bool> cancelled_ = false;
  alignas(std::max_align_t) char initial_block_[2048];
  google::protobuf::Arena arena_;
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
  if (backend.draining.load()) {
    call->Finish(ToGrpcStatus(Draining()));
  } else if (!pool.TryAdd(call)) {
    call->Finish(ToGrpcStatus(QueueFull()));
  }
  return call;
}

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_UNARY_CALL_H_
