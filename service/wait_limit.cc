#include "service/wait_limit.h"

#include <algorithm>

namespace attendant {

void WaitLimit::Took(SteadyTime entered, SteadyTime now,
                     std::size_t waiting_count, absl::Duration target,
                     std::size_t in_target, std::size_t least) {
  if (waiting_count == 0) {
    limit_ = most_;
    refused_ = false;
    earned_ = 0;
    return;
  }
  const absl::Duration waited = absl::FromChrono(now - entered);
  if (waited > target) {
    if (entered < lowered_) return;
    const std::size_t waiting = std::min(limit_, waiting_count + 1);
    const std::size_t met = waiting > in_target ? in_target : waiting * 9 / 10;
    limit_ = std::min(most_, std::max(least, met));
    lowered_ = now;
    refused_ = false;
    earned_ = 0;
  } else if (refused_) {
    earned_ += step_;
    if (earned_ < limit_) return;
    earned_ = 0;
    refused_ = false;
    limit_ = std::min(limit_ + 1, most_);
  }
}

}  // namespace attendant
