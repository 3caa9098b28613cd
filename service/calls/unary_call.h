// A unary call, from the request bytes to the reply.
#ifndef ATTENDANT_SERVICE_CALLS_UNARY_CALL_H_
#define ATTENDANT_SERVICE_CALLS_UNARY_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <type_traits>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "attendant/v1/attention_service.pb.h"
#include "core/base/clock.h"
#include "core/base/interrupt.h"
#include "core/base/status.h"
#include "service/calls/authorize.h"
#include "service/calls/backend.h"
#include "service/calls/call.h"
#include "service/calls/call_trace.h"
#include "service/calls/flow.h"
#include "service/calls/pooled_call.h"
#include "service/calls/read_after_write.h"
#include "service/calls/refused_call.h"
#include "service/calls/request_limits.h"
#include "service/convert/time.h"
#include "service/convert/wire.h"
#include "service/queue/worker_pool.h"
#include "service/security/access.h"

namespace attendant {

template <typename Request, typename Response>
using Handler = absl::Status (*)(Backend&, const Request&, const Interrupt&,
                                 Response*);

// A handler whose reply may mention other catalogs; it mentions only those in
// `scope`.
template <typename Request, typename Response>
using ScopedHandler = absl::Status (*)(Backend&, const CatalogScope& scope,
                                       const Request&, const Interrupt&,
                                       Response*);

// Parses, handles and serialises one call on a worker. While the write that its
// token names is not visible, it is retried from the handler on.
template <typename Request, typename Response, typename Handle>
class UnaryCall final : public PooledCall {
 public:
  UnaryCall(Backend& backend, const Method& method, Handle handler,
            WorkerPool& pool, grpc::CallbackServerContext& context,
            const grpc::ByteBuffer& request, grpc::ByteBuffer& response)
      : PooledCall(backend, pool, method, context, request, response),
        handler_(handler) {}

  void Run() override {
    record_.BeginWork();
    const absl::Status status = RunHandler([this] { return Answer(); });
    if (!TryAgainLater(status)) End(status);
  }

 private:
  void Describe(std::vector<LogField>& fields) const override {
    if constexpr (requires(const Request& request) { request.catalog(); }) {
      if (message_ != nullptr) {
        fields.emplace_back("catalog", message_->catalog());
      }
    }
    if (!record_.method().is_query) return;
    // The stages that all queries have in common.
    v1::QueryPlan plan;
    DurationToProto(record_.queue_duration(), plan.mutable_queue_duration());
    DurationToProto(read_duration_, plan.mutable_read_duration());
    DurationToProto(answer_duration_, plan.mutable_answer_duration());
    DurationToProto(reply_duration_, plan.mutable_reply_duration());
    fields.emplace_back("plan", LogValue::Json(PlanToJson(plan)));
  }

  absl::Status Answer() {
    // The deadline may have passed while the call waited.
    absl::Status status = interrupt_.Check();
    if (!status.ok()) return status;
    if (message_ == nullptr) {
      const Stopwatch read(read_duration_);
      Request* message = NewMessage<Request>();
      status = ParseMessage(request_, message);
      if (!status.ok()) return status;
      message_ = message;
      status = Authorize(backend_, grant(), record_.method(), *message_);
      if (!status.ok()) return status;
      status = CheckLimits(backend_.limits, *message_);
      if (!status.ok()) return status;
      reply_ = NewMessage<Response>();
    }
    reply_->Clear();
    {
      const Stopwatch answer(answer_duration_);
      status = CallHandler();
    }
    if (!status.ok()) return status;
    const Stopwatch reply(reply_duration_);
    return SerialiseMessage(*reply_, backend_.max_message_bytes, &response_);
  }

  absl::Status CallHandler() {
    if constexpr (std::is_same_v<Handle, ScopedHandler<Request, Response>>) {
      ATTENDANT_ASSIGN_OR_RETURN(const auto grant,
                                 GrantOf(backend_, context_, record_.method()));
      return handler_(backend_, grant->scope, *message_, interrupt_, reply_);
    } else {
      return handler_(backend_, *message_, interrupt_, reply_);
    }
  }

  // Adds its lifetime to `total`.
  class Stopwatch {
   public:
    explicit Stopwatch(absl::Duration& total) : total_(total) {}
    ~Stopwatch() { total_ += TimeSince(begin_); }

   private:
    absl::Duration& total_;
    const SteadyTime begin_ = SteadyNow();
  };

  const Handle handler_;
  absl::Duration read_duration_;
  absl::Duration answer_duration_;  // over all tries
  absl::Duration reply_duration_;
  Request* message_ = nullptr;  // null: not parsed yet
  Response* reply_ = nullptr;
};

// Starts a call with a Handler or a ScopedHandler. gRPC owns the result.
template <typename Request, typename Response, typename Handle>
grpc::ServerUnaryReactor* StartUnaryCall(Backend& backend, WorkerPool& pool,
                                         const Method& method, Handle handler,
                                         grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) {
  if (backend.draining.load()) {
    return RefuseCall(backend, method, Draining(), *context);
  }
  auto* call = new UnaryCall<Request, Response, Handle>(
      backend, method, handler, pool, *context, *request, *response);
  FlowKey flow;
  const absl::Status status = RunHandler([&] {
    flow = kNamesCatalog<Request>
               ? FlowOfCatalog(call->grant(), *context, *request,
                               method.is_query ? nullptr : backend.catalogs)
               : FlowOfCaller(call->grant(), *context);
    return absl::OkStatus();
  });
  if (status.ok()) {
    call->Enter(flow);
  } else {
    call->Refuse(status);
  }
  return call;
}

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_UNARY_CALL_H_
