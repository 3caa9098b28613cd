#include "service/calls/pooled_call.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "absl/time/time.h"
#include "service/calls/call.h"
#include "service/calls/read_after_write.h"

namespace attendant {
namespace {

// A write takes about as long as a disk sync.
constexpr absl::Duration kFirstWait = absl::Milliseconds(1);
constexpr absl::Duration kLongestWait = absl::Milliseconds(16);

}  // namespace

bool PooledCall::TryAgainLater(const absl::Status& status) noexcept {
  std::unique_ptr<grpc::Alarm> alarm;
  try {
    if (!IsNotVisibleYet(status)) return false;
    alarm = std::make_unique<grpc::Alarm>();
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (next_wait_ == absl::ZeroDuration()) {
    next_wait_ = kFirstWait;
    wait_end_ = interrupt_.deadline == SteadyTime::max()
                    ? SteadyAfter(kDefaultTokenWait)
                    : interrupt_.deadline;
  }
  if (SteadyNow() >= wait_end_) return false;
  const SteadyTime next = std::min(SteadyAfter(next_wait_), wait_end_);
  next_wait_ = std::min(2 * next_wait_, kLongestWait);
  alarm_ = std::move(alarm);
  backend_.calls.Begin();
  alarm_->Set(ToGrpcTime(next), [this](bool /*rang*/) {
    // The call may end before Add returns; a shutdown must wait for both.
    CallCount& calls = backend_.calls;
    pool_.Add(this);
    calls.End();
  });
  return true;
}

void PooledCall::OnCancel() {
  RecordedCall::OnCancel();
  pool_.Cancel(this);
}

void PooledCall::End(const absl::Status& status) noexcept {
  CountCutShort(status, *this);
  Finish(status);
}

}  // namespace attendant
