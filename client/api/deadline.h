// Deadlines of calls.
#ifndef ATTENDANT_CLIENT_API_DEADLINE_H_
#define ATTENDANT_CLIENT_API_DEADLINE_H_

#include <grpc/support/time.h>

#include <algorithm>

#include "absl/time/time.h"

namespace attendant {

// Returns now + `duration` for a gRPC context, by a clock that changes of the
// time of day do not affect. Durations over 100 years count as 100 years.
inline gpr_timespec DeadlineAfter(absl::Duration duration) {
  const absl::Duration most = absl::Hours(100 * 365 * 24);
  return gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_nanos(absl::ToInt64Nanoseconds(std::min(duration, most)),
                          GPR_TIMESPAN));
}

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_DEADLINE_H_
