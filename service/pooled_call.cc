#include "service/pooled_call.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "service/read_after_write.h"

namespace attendant {
namespace {

// A write takes about as long as the disk takes to sync.
constexpr absl::Duration kFirstWait = absl::Milliseconds(1);
constexpr absl::Duration kLongestWait = absl::Milliseconds(16);

}  // namespace

bool PooledCall::TryAgainLater(WorkerPool& pool) {
  const absl::Time now = absl::Now();
  if (next_wait_ == absl::ZeroDuration()) {
    next_wait_ = kFirstWait;
    wait_end_ = interrupt_.deadline == absl::InfiniteFuture()
                    ? now + kDefaultTokenWait
                    : interrupt_.deadline;
  }
  if (now >= wait_end_) return false;
  const absl::Time next = std::min(now + next_wait_, wait_end_);
  next_wait_ = std::min(2 * next_wait_, kLongestWait);
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(absl::ToChronoTime(next), [this, &pool](bool /*rang*/) {
    if (!pool.TryAdd(this)) Finish(ToGrpcStatus(QueueFull()));
  });
  return true;
}

}  // namespace attendant
