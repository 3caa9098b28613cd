// An open loop: requests are sent when they are due, whether or not earlier
// ones are answered. A latency counts from the due time, not from sending, so
// that neither a slow server nor a late generator hides how long callers would
// have waited (coordinated omission).
#ifndef ATTENDANT_CLIENT_LOAD_SEND_OPEN_LOOP_H_
#define ATTENDANT_CLIENT_LOAD_SEND_OPEN_LOOP_H_

#include <cstdint>

#include "absl/time/time.h"
#include "client/load/results/load_result.h"
#include "client/load/send/rate_profile.h"
#include "client/load/send/traffic.h"

namespace attendant {

struct OpenLoopOptions {
  RateProfile profile = RateProfile::Constant(1000, absl::Seconds(10));
  Arrivals arrivals = Arrivals::kPoisson;
  std::uint64_t seed = 1;
  // A warm-up at the profile's first rate, which does not count, >= 0.
  absl::Duration warmup = absl::Seconds(1);
};

// Sends from this thread and returns when the last request is answered.
// Requests due after the warm-up count in the slice of the profile in which
// they were due, whenever they are answered; the load lasts until the last
// answer. Slices are as long as planned, and also count the answers that
// arrived in them. `traffic.send` should return at once. A stopped load and its
// last slice last until the load was stopped.
LoadResult RunOpenLoop(const OpenLoopOptions& options, const Traffic& traffic);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_SEND_OPEN_LOOP_H_
