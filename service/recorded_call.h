// What all calls have in common, whatever they stream.
#ifndef ATTENDANT_SERVICE_RECORDED_CALL_H_
#define ATTENDANT_SERVICE_RECORDED_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <vector>

#include "absl/status/status.h"
#include "core/base/clock.h"
#include "core/base/interrupt.h"
#include "service/backend.h"
#include "service/call.h"
#include "service/call_record.h"
#include "service/grpc_status.h"
#include "service/log.h"
#include "service/metrics/server_metrics.h"
#include "service/retry_delay.h"

namespace attendant {

// A reactor of gRPC's that belongs to gRPC: lives until OnDone. The way to end
// it is Finish, or StartWriteAndFinish, of this class.
template <typename Reactor>
class RecordedCall : public Reactor {
 public:
  void OnCancel() override { cancelled_.store(true); }
  void OnDone() override {
    CallCount& calls = backend_.calls;
    delete this;
    calls.End();
  }

 protected:
  RecordedCall(Backend& backend, const Method& method,
               grpc::CallbackServerContext& context)
      : backend_(backend),
        context_(context),
        record_(backend.records, method, context) {
    backend_.calls.Begin();
    interrupt_.deadline = DeadlineOf(context);
    interrupt_.cancelled = &cancelled_;
  }
  ~RecordedCall() override = default;

  // The call may be gone after it.
  void Finish(const absl::Status& status) {
    PushBack(status, context_);
    End(status);
    Reactor::Finish(ToGrpcStatus(status));
  }
  // Of a call that streams replies, which succeeded.
  void StartWriteAndFinish(const grpc::ByteBuffer* last) {
    End(absl::OkStatus());
    Reactor::StartWriteAndFinish(last, grpc::WriteOptions(), grpc::Status::OK);
  }

  // Adds what is worth logging of this call to `fields`.
  virtual void Describe(std::vector<LogField>& /*fields*/) const {}

  Backend& backend_;
  grpc::CallbackServerContext& context_;
  Interrupt interrupt_;
  std::atomic<bool> cancelled_ = false;
  CallRecord record_;

 private:
  void End(const absl::Status& status) {
    record_.End(status,
                [this](std::vector<LogField>& fields) { Describe(fields); });
  }
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_RECORDED_CALL_H_
