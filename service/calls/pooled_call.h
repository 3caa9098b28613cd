// A unary call that a worker pool handles; knows nothing of its message types.
#ifndef ATTENDANT_SERVICE_CALLS_POOLED_CALL_H_
#define ATTENDANT_SERVICE_CALLS_POOLED_CALL_H_

#include <google/protobuf/arena.h>
#include <grpcpp/alarm.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <memory>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "service/calls/authorize.h"
#include "service/calls/backend.h"
#include "service/calls/call.h"
#include "service/calls/recorded_call.h"
#include "service/convert/wire.h"
#include "service/queue/worker_pool.h"

namespace attendant {

// Waits in a worker pool for its turn; a long-running query yields to others in
// between. Messages live on one arena. Lives from its construction until gRPC
// is done with it; after Finish it may be deleted at any moment.
class PooledCall : public RecordedCall<grpc::ServerUnaryReactor>, public Work {
 public:
  // All arguments must outlive the call.
  PooledCall(Backend& backend, WorkerPool& pool, const Method& method,
             grpc::CallbackServerContext& context,
             const grpc::ByteBuffer& request, grpc::ByteBuffer& response)
      : RecordedCall(backend, method, context),
        Work(interrupt_),
        pool_(pool),
        request_(request),
        response_(response),
        grant_(FindGrant(backend, context)),
        arena_(ArenaOptions(initial_block_)) {
    // Only queries yield: other methods hold locks or wait for the disk.
    if (method.is_query) interrupt_.yielder = this;
  }

  // The grant found when the call arrived; a token is looked up once.
  const Grant* grant() const { return grant_.get(); }

  // Adds the call to the pool under `flow`, or refuses it if a shutdown has
  // begun.
  void Enter(const FlowKey& flow) {
    if (backend_.draining.load()) return Finish(Draining());
    set_flow(flow);
    pool_.Add(this);
  }

  void Refuse(const absl::Status& status) override { Finish(status); }
  void Yield() override { pool_.Yield(this); }

  // If `status` tells that the write a token names is not visible yet, adds the
  // call to the pool again a little later; it holds no worker meanwhile.
  // Returns false for another status, if the call has kept retrying up to its
  // deadline, or for kDefaultTokenWait if it has none, or if there is no memory
  // to wait with. After true the call may be deleted.
  bool TryAgainLater(const absl::Status& status) noexcept;

  // Removes the call from the queue if it waits there.
  void OnCancel() override;

  // OnDone and OnCancel return at once, so gRPC need not hand them to another
  // thread, which costs as much as a small reply.
  bool InternalInlineable() override { return true; }

 protected:
  ~PooledCall() override = default;

  // Ends the call inside Run. The call may be deleted before this returns.
  void End(const absl::Status& status) noexcept;
  // Sends the response if the status is OK. The call may be deleted before this
  // returns.
  void Finish(const absl::Status& status) noexcept {
    RecordedCall::Finish(status, status.ok() ? response_.Length() : 0);
  }

  template <typename Message>
  Message* NewMessage() {
    return google::protobuf::Arena::CreateMessage<Message>(&arena_);
  }

  // Bytes that the messages take.
  std::size_t HeldBytes() const {
    return static_cast<std::size_t>(arena_.SpaceAllocated());
  }
  void DropMessages() { arena_.Reset(); }

  WorkerPool& pool_;
  const grpc::ByteBuffer& request_;
  grpc::ByteBuffer& response_;
  const std::shared_ptr<const Grant> grant_;

 private:
  // Holds a request and its reply of ten items; further blocks start at twice
  // this size.
  static constexpr std::size_t kInitialBlockBytes = 5120;

  static google::protobuf::ArenaOptions ArenaOptions(char* initial_block) {
    google::protobuf::ArenaOptions options = MessageArenaOptions();
    options.initial_block = initial_block;
    options.initial_block_size = kInitialBlockBytes;
    return options;
  }

  // A new alarm for each wait: the callback of the previous one may still be
  // returning.
  std::unique_ptr<grpc::Alarm> alarm_;
  SteadyTime wait_end_ = SteadyTime::max();
  absl::Duration next_wait_ = absl::ZeroDuration();  // zero: has not waited yet
  alignas(std::max_align_t) char initial_block_[kInitialBlockBytes];
  google::protobuf::Arena arena_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_POOLED_CALL_H_
