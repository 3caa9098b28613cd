#include "service/queue/retry_delay.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace attendant {
namespace {

constexpr absl::string_view kPayload = "attendant/retry-delay-ms";

}  // namespace

absl::Duration Scattered(absl::Duration delay) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const double share = std::uniform_real_distribution<double>(0.5, 1.5)(random);
  return absl::Trunc(share * delay, absl::Milliseconds(1));
}

absl::Status WithRetryDelay(absl::Status status, absl::Duration delay) {
  const std::int64_t delay_ms =
      absl::ToInt64Milliseconds(Scattered(std::max(delay, kRetryDelay)));
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(delay_ms)));
  return status;
}

std::optional<absl::Duration> RetryDelayOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  std::int64_t delay_ms = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &delay_ms)) {
    return std::nullopt;
  }
  return absl::Milliseconds(delay_ms);
}

}  // namespace attendant
