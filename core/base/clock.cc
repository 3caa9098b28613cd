#include "core/base/clock.h"

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

}  // namespace attendant
