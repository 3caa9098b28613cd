// A closed loop of callers: each sends its next request when its last one is
// answered. The rate is what the server can do for so many callers; a slow
// answer delays the requests after it, so latencies under an arrival rate of
// their own (an open loop) would be worse at the tail. A caller whose request
// failed waits as long as the server says, as callers do that are worth having;
// else those that are refused would keep the server, and us, from the others.
#ifndef ATTENDANT_CLIENT_LOAD_SEND_CLOSED_LOOP_H_
#define ATTENDANT_CLIENT_LOAD_SEND_CLOSED_LOOP_H_

#include "absl/time/time.h"
#include "client/load/results/load_result.h"
#include "client/load/send/traffic.h"

namespace attendant {

struct ClosedLoopOptions {
  int concurrency = 16;                         // callers, >= 1
  absl::Duration warmup = absl::Seconds(1);     // not counted, >= 0
  absl::Duration duration = absl::Seconds(10);  // counted, > 0
};

// How long a caller waits after a failure that does not say when to try again.
inline constexpr absl::Duration kDelayAfterFailure = absl::Milliseconds(100);

// Runs the loop and returns when the last request is answered. What is answered
// after the warm-up counts, after the end too, and the load lasts until the
// last answer; one that is stopped is as long as it was.
LoadResult RunClosedLoop(const ClosedLoopOptions& options,
                         const Traffic& traffic);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_SEND_CLOSED_LOOP_H_
