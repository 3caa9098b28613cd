// When to stop working on a request.
#ifndef ATTENDANT_CORE_BASE_INTERRUPT_H_
#define ATTENDANT_CORE_BASE_INTERRUPT_H_

#include <atomic>

#include "absl/status/status.h"
#include "core/base/clock.h"

namespace attendant {

// A deadline and a flag that the caller may set. Engines call Check every few
// thousand rows. The flag must outlive the object. Thread-safe.
struct Interrupt {
  SteadyTime deadline = SteadyTime::max();  // max(): none
  const std::atomic<bool>* cancelled = nullptr;

  // OK, Cancelled, or DeadlineExceeded.
  absl::Status Check() const {
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) {
      return absl::CancelledError("the caller went away");
    }
    if (deadline != SteadyTime::max() && SteadyNow() >= deadline) {
      return absl::DeadlineExceededError("the deadline passed");
    }
    return absl::OkStatus();
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_INTERRUPT_H_
