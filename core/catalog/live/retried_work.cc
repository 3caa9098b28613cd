#include "core/catalog/live/retried_work.h"

#include <algorithm>

namespace attendant {

void RetriedWork::Note(const absl::Status& outcome, absl::Duration first) {
  constexpr int kMaxDoublings = 6;
  MutexLock lock(&mutex_);
  status_ = outcome;
  if (outcome.ok()) {
    failure_count_ = 0;
    return;
  }
  pause_end_ =
      SteadyAfter(first * (1 << std::min(failure_count_, kMaxDoublings)));
  ++failure_count_;
}

void RetriedWork::SetStatus(const absl::Status& status) {
  MutexLock lock(&mutex_);
  status_ = status;
}

void RetriedWork::EndPause() {
  MutexLock lock(&mutex_);
  failure_count_ = 0;
}

absl::Status RetriedWork::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

std::optional<absl::Duration> RetriedWork::PauseLeft() const {
  MutexLock lock(&mutex_);
  if (failure_count_ == 0) return std::nullopt;
  const absl::Duration left = TimeUntil(pause_end_);
  if (left <= absl::ZeroDuration()) return std::nullopt;
  return left;
}

bool RetriedWork::has_failed() const {
  MutexLock lock(&mutex_);
  return failure_count_ > 0;
}

}  // namespace attendant
