// An open loop: requests are sent when their time has come, whatever became of
// those before. A latency counts from that time and not from the sending, so
// that neither a slow server nor a late generator hides what callers would have
// waited (coordinated omission).
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
  // At the profile's first rate, not counted, >= 0.
  absl::Duration warmup = absl::Seconds(1);
};

// Sends from this thread and returns when the last request is answered. All
// that were due after the warm-up count, in the slice of the profile that they
// were due in, whenever they were answered: the load lasts until the last
// answer. Slices are as long as planned, and count the answers that came in
// them beside. `traffic.send` should return at once. A load that is stopped is
// as long as it was, and so is its last slice.
LoadResult RunOpenLoop(const OpenLoopOptions& options, const Traffic& traffic);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_SEND_OPEN_LOOP_H_
