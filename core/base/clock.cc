#include "core/base/clock.h"

#include "absl/time/clock.h"

namespace attendant {
namespace {

class SystemClock : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
};

}  // namespace

const Clock& Clock::System() {
  static const SystemClock* const clock = new SystemClock;
  return *clock;
}

SteadyTime SteadyAfter(absl::Duration duration) {
  const SteadyTime now = SteadyNow();
  if (duration >= absl::FromChrono(SteadyTime::max() - now)) {
    return SteadyTime::max();
  }
  return now + absl::ToChronoNanoseconds(duration);
}

absl::Duration TimeUntil(SteadyTime time) {
  if (time == SteadyTime::max()) return absl::InfiniteDuration();
  return absl::FromChrono(time - SteadyNow());
}

}  // namespace attendant
