#include "service/queue/wait_limit.h"

#include <algorithm>

namespace attendant {

void WaitLimit::Took(SteadyTime entered, SteadyTime now,
                     std::size_t waiting_count, absl::Duration target,
                     std::size_t in_target, std::size_t least) {
  if (waiting_count == 0) {
    limit_ = most_;
    standing_since_ = SteadyTime::max();
    refused_ = false;
    earned_ = 0;
    return;
  }
  const absl::Duration waited = absl::FromChrono(now - entered);
  if (waited > target) {
    standing_since_ = std::min(standing_since_, now);
    if (entered < lowered_) return;
    const absl::Duration stood = absl::FromChrono(now - standing_since_);
    if (limit_ == most_ && stood < kStanding) return;
    const std::size_t waiting = std::min(limit_, waiting_count + 1);
    const std::size_t met = waiting > in_target ? in_target : waiting * 9 / 10;
    limit_ = std::min(most_, std::max(least, met));
    lowered_ = now;
    refused_ = false;
    earned_ = 0;
    return;
  }
  standing_since_ = SteadyTime::max();
  if (refused_) {
    earned_ += step_;
    if (earned_ < limit_) return;
    earned_ = 0;
    refused_ = false;
    limit_ = std::min(limit_ + 1, most_);
  }
}

}  // namespace attendant
