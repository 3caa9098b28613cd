#include "core/base/interrupt.h"

namespace attendant {
namespace {

// Made when the program starts: later there may be no memory for them.
const absl::Status& kDeadlinePassed =
    *new absl::Status(absl::DeadlineExceededError("the deadline passed"));
const absl::Status& kCallerGone =
    *new absl::Status(absl::CancelledError("the caller went away"));

}  // namespace

absl::Status Interrupt::GoneAt(SteadyTime now) const {
  return now >= deadline || now >= caller_deadline ? kDeadlinePassed
                                                   : kCallerGone;
}

}  // namespace attendant
