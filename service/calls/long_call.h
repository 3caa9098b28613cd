// A long-running call that reports progress: one request, and a stream of
// responses of which the last is the result.
#ifndef ATTENDANT_SERVICE_CALLS_LONG_CALL_H_
#define ATTENDANT_SERVICE_CALLS_LONG_CALL_H_

#include <google/protobuf/arena.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/long_work.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "service/calls/authorize.h"
#include "service/calls/backend.h"
#include "service/calls/call.h"
#include "service/calls/flow.h"
#include "service/calls/recorded_call.h"
#include "service/convert/wire.h"
#include "service/queue/worker_pool.h"
#include "service/security/access.h"

namespace attendant {

// Like ScopedHandler of unary_call.h, but reports progress to `work`.
template <typename Request, typename Response>
using LongHandler = absl::Status (*)(Backend&, const CatalogScope& scope,
                                     const Request&, LongWork& work, Response*);

// Parses, handles and serialises on a worker. Sends progress at most every
// kProgressInterval, and skips it rather than wait for a slow client. Response
// must have a field `progress` of type v1::WorkProgress. Lives until gRPC is
// done with it.
template <typename Request, typename Response>
class LongCall final
    : public RecordedCall<grpc::ServerWriteReactor<grpc::ByteBuffer>>,
      public Work {
 public:
  static constexpr absl::Duration kProgressInterval = absl::Milliseconds(200);

  // gRPC owns the result.
  static LongCall* Start(Backend& backend, WorkerPool& pool,
                         const Method& method,
                         LongHandler<Request, Response> handler,
                         grpc::CallbackServerContext& context,
                         const grpc::ByteBuffer& request) {
    auto* call = new LongCall(backend, pool, method, handler, context, request);
    if (backend.draining.load()) {
      call->Finish(Draining());
    } else {
      pool.Add(call);
    }
    return call;
  }

  void OnWriteDone(bool ok) override {
    wait_.End();
    if (!ok) Base::OnCancel();
    bool end = false;
    {
      MutexLock lock(&mutex_);
      writing_ = false;
      end = ended_;
    }
    if (end) End();
  }

  void Refuse(const absl::Status& status) override { Base::Finish(status); }

  // Removes the call from the queue if it waits there.
  void OnCancel() override {
    Base::OnCancel();
    pool_.Cancel(this);
  }

  void Run() override {
    status_ = RunHandler([this] { return Handle(); });
    Base::CountCutShort(status_, *this);
    bool end = false;
    {
      MutexLock lock(&mutex_);
      ended_ = true;
      end = !writing_;
    }
    if (end) End();
  }

 private:
  using Base = RecordedCall<grpc::ServerWriteReactor<grpc::ByteBuffer>>;
  using Base::backend_;
  using Base::interrupt_;

  LongCall(Backend& backend, WorkerPool& pool, const Method& method,
           LongHandler<Request, Response> handler,
           grpc::CallbackServerContext& context,
           const grpc::ByteBuffer& request)
      : Base(backend, method, context),
        Work(Base::interrupt_),
        pool_(pool),
        handler_(handler),
        request_(request) {
    set_flow(FlowOfCaller(FindGrant(backend, context).get(), context));
  }

  absl::Status Handle() {
    // The deadline may have passed while the call waited.
    ATTENDANT_RETURN_IF_ERROR(interrupt_.Check());
    google::protobuf::Arena arena(MessageArenaOptions());
    Request& request = *google::protobuf::Arena::CreateMessage<Request>(&arena);
    ATTENDANT_RETURN_IF_ERROR(ParseMessage(request_, &request));
    ATTENDANT_ASSIGN_OR_RETURN(const auto grant,
                               GrantOf(backend_, context_, record_.method()));
    ATTENDANT_RETURN_IF_ERROR(
        Authorize(backend_, grant.get(), record_.method(), request));
    LongWork work(interrupt_, [this](std::int64_t done, std::int64_t total) {
      Report(done, total);
    });
    Response response;
    ATTENDANT_RETURN_IF_ERROR(
        handler_(backend_, grant->scope, request, work, &response));
    return SerialiseMessage(response, backend_.max_message_bytes, &result_);
  }

  void Report(std::int64_t done, std::int64_t total) {
    if (SteadyNow() < next_report_) return;
    {
      MutexLock lock(&mutex_);
      if (writing_) return;
    }
    next_report_ = SteadyAfter(kProgressInterval);
    Response response;
    response.mutable_progress()->set_done_bytes(done);
    response.mutable_progress()->set_total_bytes(total);
    progress_.Clear();
    // Can't fail: a few bytes always fit.
    SerialiseMessage(response, backend_.max_message_bytes, &progress_)
        .IgnoreError();
    {
      // Set only now: if allocating the message had failed, no write would
      // reset it.
      MutexLock lock(&mutex_);
      writing_ = true;
    }
    StartWrite(&progress_);
  }

  // The call may be deleted before this returns.
  void End() {
    if (status_.ok()) {
      StartWriteAndFinish(&result_);
    } else {
      Base::Finish(status_);
    }
  }

  WorkerPool& pool_;
  const LongHandler<Request, Response> handler_;
  const grpc::ByteBuffer& request_;
  // Accessed by the worker, then by the reaction that ends the call.
  SteadyTime next_report_ = SteadyTime::min();
  absl::Status status_;
  grpc::ByteBuffer result_;
  grpc::ByteBuffer progress_;  // owned by the write while writing_
  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_LONG_CALL_H_
