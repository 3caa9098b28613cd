// Base class of all calls, whatever they stream.
#ifndef ATTENDANT_SERVICE_CALLS_RECORDED_CALL_H_
#define ATTENDANT_SERVICE_CALLS_RECORDED_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/interrupt.h"
#include "service/calls/backend.h"
#include "service/calls/call.h"
#include "service/calls/call_record.h"
#include "service/calls/grpc_status.h"
#include "service/log/log.h"
#include "service/metrics/server_metrics.h"
#include "service/queue/work.h"
#include "service/watches/stall_watch.h"

namespace attendant {

// A gRPC reactor that gRPC owns: lives until OnDone. End it only with this
// class's Finish or StartWriteAndFinish.
template <typename Reactor>
class RecordedCall : public Reactor {
 public:
  void OnCancel() override {
    cancel_time_.store(SteadyNow());
    cancelled_.store(true);
  }
  void OnDone() override { delete this; }

 private:
  // First, since whoever waits for the count may then delete the backend.
  const CallCount::Counted counted_;

 protected:
  RecordedCall(Backend& backend, const Method& method,
               grpc::CallbackServerContext& context)
      : counted_(backend.calls),
        backend_(backend),
        context_(context),
        record_(backend.records, method, context),
        wait_(backend.stall_watch, context) {
    backend_.poller_reserve->BeginWork();
    interrupt_.deadline = DeadlineOf(context);
    interrupt_.caller_deadline =
        CallerDeadline(interrupt_.deadline, SteadyNow());
    interrupt_.cancelled = &cancelled_;
  }
  ~RecordedCall() override = default;

  // Finishes with a reply of `reply_bytes` bytes. The call may be deleted
  // before this returns. Never fails before gRPC is told, or its client would
  // wait for ever: what there is no memory for is left out.
  void Finish(const absl::Status& status,
              std::size_t reply_bytes = 0) noexcept {
    PushBack(status, context_);
    End(status);
    wait_.Begin(reply_bytes);
    Reactor::Finish(ToGrpcStatus(status));
  }
  // For calls that stream replies. Call wait_.End() when the write is done.
  void StartWrite(const grpc::ByteBuffer* reply) {
    record_.CountWritten();
    wait_.Begin(reply->Length());
    Reactor::StartWrite(reply);
  }
  // For calls that read a stream. Call EndRead after each.
  void StartRead(grpc::ByteBuffer* message) {
    wait_.BeginRead();
    Reactor::StartRead(message);
  }
  // `ok`: a message was read.
  void EndRead(bool ok) {
    wait_.End();
    if (ok) record_.CountRead();
  }
  // Ends a call that succeeded.
  void StartWriteAndFinish(const grpc::ByteBuffer* last) noexcept {
    record_.CountWritten();
    End(absl::OkStatus());
    wait_.Begin(last->Length());
    Reactor::StartWriteAndFinish(last, grpc::WriteOptions(), grpc::Status());
  }

  // Call inside a Run that ends with `status`: tells the queue if the work
  // stopped early because nobody waits for it any more.
  void CountCutShort(const absl::Status& status, Work& work) const {
    const SteadyTime now = SteadyNow();
    if (status.ok() || interrupt_.EndedAt(now).ok()) return;
    work.CutShort(absl::FromChrono(
        now - std::min(interrupt_.deadline, cancel_time_.load())));
  }

  // For a call that gRPC reports as over: the reason.
  absl::Status Gone() const { return interrupt_.GoneAt(SteadyNow()); }

  // Adds call-specific log fields to `fields`.
  virtual void Describe(std::vector<LogField>& /*fields*/) const {}

  Backend& backend_;
  grpc::CallbackServerContext& context_;
  Interrupt interrupt_;
  std::atomic<bool> cancelled_ = false;
  CallRecord record_;
  StallWatch::Wait wait_;

 private:
  void End(const absl::Status& status) {
    record_.End(status,
                [this](std::vector<LogField>& fields) { Describe(fields); });
  }

  std::atomic<SteadyTime> cancel_time_ = SteadyTime::max();
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_RECORDED_CALL_H_
