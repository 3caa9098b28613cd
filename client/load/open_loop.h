// An open loop: requests are sent when their time has come, whatever became of
// those before. A latency counts from that time and not from the sending, so
// that neither a slow server nor a late generator hides what callers would have
// waited (coordinated omission).
#ifndef ATTENDANT_CLIENT_LOAD_OPEN_LOOP_H_
#define ATTENDANT_CLIENT_LOAD_OPEN_LOOP_H_

#include <cstdint>
#include <random>

#include "absl/time/time.h"
#include "client/load/load_result.h"

namespace attendant {

enum class Arrivals {
  kFixed,    // at equal distances
  kPoisson,  // at random, as of many callers that know nothing of each other
};

// When requests are due, from the start on, ascending; the same for a seed.
class Schedule {
 public:
  // rate > 0, a second. The first request of kFixed is due at 0.
  Schedule(double rate, Arrivals arrivals, std::uint64_t seed)
      : rate_(rate), arrivals_(arrivals), random_(seed) {}

  absl::Duration Next();

 private:
  const double rate_;
  const Arrivals arrivals_;
  std::mt19937_64 random_;
  std::int64_t count_ = 0;
  double seconds_ = 0;
};

struct OpenLoopOptions {
  double rate = 1000;  // requests a second, > 0
  Arrivals arrivals = Arrivals::kPoisson;
  std::uint64_t seed = 1;
  absl::Duration warmup = absl::Seconds(1);     // not counted, >= 0
  absl::Duration duration = absl::Seconds(10);  // counted, > 0
};

// Sends from this thread and returns when the last request is answered. All
// that were due after the warm-up and before the end count, whenever they were
// answered. `send` should return at once.
LoadResult RunOpenLoop(const OpenLoopOptions& options, const SendRequest& send);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_OPEN_LOOP_H_
