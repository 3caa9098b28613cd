// A unary call that a worker pool handles, apart from its messages.
#ifndef ATTENDANT_SERVICE_POOLED_CALL_H_
#define ATTENDANT_SERVICE_POOLED_CALL_H_

#include <google/protobuf/arena.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>

#include "absl/strings/string_view.h"
#include "core/base/interrupt.h"
#include "service/backend.h"
#include "service/call.h"
#include "service/grpc_status.h"
#include "service/worker_pool.h"

namespace attendant {

// Waits in a worker pool for its turn. Messages live on one arena. Lives from
// its construction until gRPC is done with it; after Finish it may be gone at
// any moment.
class PooledCall : public grpc::ServerUnaryReactor, public Work {
 public:
  // `method` is a literal; all others must outlive the call.
  PooledCall(Backend& backend, absl::string_view method,
             const grpc::CallbackServerContext& context,
             const grpc::ByteBuffer& request, grpc::ByteBuffer& response)
      : backend_(backend),
        method_(method),
        request_(request),
        response_(response),
        arena_(initial_block_, sizeof(initial_block_)) {
    backend_.calls.Begin();
    interrupt_.deadline = DeadlineOf(context);
    interrupt_.cancelled = &cancelled_;
  }

  // Hands it to the pool, or refuses it.
  void Enter(WorkerPool& pool) {
    if (backend_.draining.load()) {
      Finish(ToGrpcStatus(Draining()));
    } else if (!pool.TryAdd(this)) {
      Finish(ToGrpcStatus(QueueFull()));
    }
  }

  void OnCancel() override { cancelled_.store(true); }
  void OnDone() override {
    CallCount& calls = backend_.calls;
    delete this;
    calls.End();
  }

 protected:
  ~PooledCall() override = default;

  template <typename Message>
  Message* NewMessage() {
    return google::protobuf::Arena::CreateMessage<Message>(&arena_);
  }

  Backend& backend_;
  const absl::string_view method_;
  const grpc::ByteBuffer& request_;
  grpc::ByteBuffer& response_;
  Interrupt interrupt_;

 private:
  std::atomic<bool> cancelled_ = false;
  alignas(std::max_align_t) char initial_block_[2048];
  google::protobuf::Arena arena_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_POOLED_CALL_H_
