// Time as a dependency, so that tests need not wait.
#ifndef ATTENDANT_CORE_BASE_CLOCK_H_
#define ATTENDANT_CORE_BASE_CLOCK_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace attendant {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;

  // The system's clock. Never deleted.
  static const Clock& System();
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_CLOCK_H_
