#include "client/commands/shared/event_time.h"

#include <array>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/time/civil_time.h"

namespace attendant {
namespace {

// Returns the time if a Timestamp can represent it; absl also parses
// "infinite-future".
std::optional<absl::Time> OnTheWire(absl::Time time) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  static const absl::Time kFirst = absl::FromCivil(absl::CivilYear(1), utc);
  static const absl::Time kEnd = absl::FromCivil(absl::CivilYear(10000), utc);
  if (time < kFirst || time >= kEnd) return std::nullopt;
  return time;
}

}  // namespace

std::optional<absl::Time> ParseDateTime(absl::string_view text) {
  static const std::array<absl::string_view, 4> kFormats = {
      absl::RFC3339_full, "%Y-%m-%d %H:%M:%E*S", "%Y-%m-%dT%H:%M:%E*S",
      "%Y-%m-%d"};
  absl::Time time;
  for (const absl::string_view format : kFormats) {
    if (absl::ParseTime(format, text, &time, nullptr)) return OnTheWire(time);
  }
  return std::nullopt;
}

std::optional<absl::Time> ParseEventTime(absl::string_view text) {
  if (const auto time = ParseDateTime(text)) return time;
  double seconds = 0;
  if (!absl::SimpleAtod(text, &seconds)) return std::nullopt;
  return OnTheWire(absl::UnixEpoch() + absl::Seconds(seconds));
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
