// A unary call that a worker pool handles, apart from its messages.
#ifndef ATTENDANT_SERVICE_POOLED_CALL_H_
#define ATTENDANT_SERVICE_POOLED_CALL_H_

#include <google/protobuf/arena.h>
#include <grpcpp/alarm.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
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

  // Enters again a little later, and holds no worker meanwhile. False if the
  // call has done so up to its deadline, or for kDefaultTokenWait without one.
  // After true the call may be gone.
  bool TryAgainLater(WorkerPool& pool);

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
  // A new one for each wait: the last one's callback may still be returning.
  std::unique_ptr<grpc::Alarm> alarm_;
  SteadyTime wait_end_ = SteadyTime::max();
  absl::Duration next_wait_ = absl::ZeroDuration();  // zero: has not waited
  alignas(std::max_align_t) char initial_block_[2048];
  google::protobuf::Arena arena_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_POOLED_CALL_H_
