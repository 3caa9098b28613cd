// When a refused caller may retry.
#ifndef ATTENDANT_SERVICE_QUEUE_RETRY_DELAY_H_
#define ATTENDANT_SERVICE_QUEUE_RETRY_DELAY_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace attendant {

// Delay for conditions that may pass in a moment, if nothing better is known.
inline constexpr absl::Duration kRetryDelay = absl::Milliseconds(200);
// Delay for conditions that need an operator or time: a full disk, too little
// memory.
inline constexpr absl::Duration kMendDelay = absl::Seconds(5);

// Returns the delay times a random factor in [0.5, 1.5], in whole milliseconds,
// so that callers refused together do not retry together.
absl::Duration Scattered(absl::Duration delay);

// Attaches a retry delay to `status`, an error expected to pass in about
// `delay`: the longer of `delay` and kRetryDelay, scattered.
absl::Status WithRetryDelay(absl::Status status, absl::Duration delay);

// Returns the delay that WithRetryDelay attached, in whole milliseconds, or
// nothing.
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_RETRY_DELAY_H_
