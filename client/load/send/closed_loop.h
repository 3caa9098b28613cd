// A closed loop of callers, each of which sends its next request when its last
// one is answered. The rate is the server's throughput for that many callers. A
// slow answer delays the requests after it, so the tail latencies of an open
// loop are worse. A caller whose request failed waits as long as the server
// says, as well-behaved clients do; otherwise, the retries of refused callers
// would take capacity of the server, and of this process, from the others.
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

// The wait of a caller after a failure that has no retry delay.
inline constexpr absl::Duration kDelayAfterFailure = absl::Milliseconds(100);

// Runs the loop and returns when the last request is answered. Answers after
// the warm-up count, including those after the end, and the load lasts until
// the last answer. A stopped load lasts until it was stopped.
LoadResult RunClosedLoop(const ClosedLoopOptions& options,
                         const Traffic& traffic);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_SEND_CLOSED_LOOP_H_
