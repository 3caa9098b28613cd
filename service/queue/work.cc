#include "service/queue/work.h"

#include <algorithm>

namespace attendant {

void Work::CutShort(absl::Duration overrun) {
  Turn& turn = *place_.turn;
  // No time was spent on the work while it was paused.
  if (turn.resume_time != SteadyTime::min()) {
    overrun = std::min(overrun, TimeSince(turn.resume_time));
  }
  const std::int64_t overrun_ns =
      std::max(std::int64_t{0}, absl::ToInt64Nanoseconds(overrun));
  ++turn.cut_short_count;
  turn.overrun_ns += overrun_ns;
  turn.longest_overrun_ns = std::max(turn.longest_overrun_ns, overrun_ns);
}

}  // namespace attendant
