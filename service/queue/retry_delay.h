// When a refused caller may try again.
#ifndef ATTENDANT_SERVICE_QUEUE_RETRY_DELAY_H_
#define ATTENDANT_SERVICE_QUEUE_RETRY_DELAY_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace attendant {

// Of what may pass in a moment, where nothing better is known.
inline constexpr absl::Duration kRetryDelay = absl::Milliseconds(200);
// Of what somebody has to mend, or to wait for: a full disk, too little memory.
inline constexpr absl::Duration kMendDelay = absl::Seconds(5);

// The delay times 0.5 to 1.5 by chance, in whole milliseconds: those refused
// together should not come back together.
absl::Duration Scattered(absl::Duration delay);

// `status`, an error that is known to pass in about `delay`. What RetryDelayOf
// says is that or kRetryDelay, whichever is longer, scattered.
absl::Status WithRetryDelay(absl::Status status, absl::Duration delay);

// What WithRetryDelay gave the status, in whole milliseconds, or nothing.
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_RETRY_DELAY_H_
