// A closed loop of callers: each sends its next request when its last one is
// answered. The rate is what the server can do for so many callers; a slow
// answer delays the requests after it, so latencies under an arrival rate of
// their own (an open loop) would be worse at the tail.
#ifndef ATTENDANT_CLIENT_LOAD_CLOSED_LOOP_H_
#define ATTENDANT_CLIENT_LOAD_CLOSED_LOOP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace attendant {

struct ClosedLoopOptions {
  int concurrency = 16;                         // callers, >= 1
  absl::Duration warmup = absl::Seconds(1);     // not counted, >= 0
  absl::Duration duration = absl::Seconds(10);  // counted, > 0
};

// What was answered after the warm-up and before the end.
struct ClosedLoopResult {
  absl::Duration duration;
  // Of the requests that succeeded, ascending.
  std::vector<std::int64_t> latencies_ns;
  std::map<absl::StatusCode, std::int64_t> status_counts;
  // Failures by message.
  std::map<std::string, std::int64_t> error_counts;

  std::int64_t request_count() const;
  std::int64_t failed_count() const;
  double requests_per_second() const;
  double mean_latency_ns() const;
  // The smallest latency that at least `percent` of the successes don't exceed;
  // percent in (0, 100]. 0 if there are none.
  std::int64_t LatencyAtPercentile(double percent) const;
};

// Sends request number `request_index` (counted over all callers, from 0) and
// calls `done` once, from another thread or later, never from within.
using SendRequest = std::function<void(
    std::int64_t request_index, std::function<void(const absl::Status&)> done)>;

// Runs the loop and returns when the last request is answered.
ClosedLoopResult RunClosedLoop(const ClosedLoopOptions& options,
                               const SendRequest& send);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_CLOSED_LOOP_H_
