#include "client/commands/event_time.h"

#include <array>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace attendant {

std::optional<absl::Time> ParseEventTime(const std::string& text) {
  static const std::array<absl::string_view, 4> kFormats = {
      absl::RFC3339_full, "%Y-%m-%d %H:%M:%E*S", "%Y-%m-%dT%H:%M:%E*S",
      "%Y-%m-%d"};
  absl::Time time;
  for (const absl::string_view format : kFormats) {
    if (absl::ParseTime(format, text, &time, nullptr)) return time;
  }
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && std::isfinite(seconds)) {
    return absl::UnixEpoch() + absl::Seconds(seconds);
  }
  return std::nullopt;
}

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  const std::int64_t seconds = absl::ToUnixSeconds(time);
  timestamp.set_seconds(seconds);
  timestamp.set_nanos(static_cast<std::int32_t>(
      absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return timestamp;
}

}  // namespace attendant
