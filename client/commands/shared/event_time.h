// Parses times in files and flags.
#ifndef ATTENDANT_CLIENT_COMMANDS_SHARED_EVENT_TIME_H_
#define ATTENDANT_CLIENT_COMMANDS_SHARED_EVENT_TIME_H_

#include <google/protobuf/timestamp.pb.h>

#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attendant {

// The "want" part of errors about a text that is not a time.
inline constexpr char kTimeWanted[] =
    "a time of the years 1 to 9999, as 2011-12-09 or 2011-12-09T12:50:00Z";

// Parses RFC 3339, or YYYY-MM-DD with or without HH:MM:SS in UTC, of the years
// 1 to 9999. Returns nothing for another text.
std::optional<absl::Time> ParseDateTime(absl::string_view text);

// Parses what ParseDateTime does, or seconds since 1970, of the same years.
std::optional<absl::Time> ParseEventTime(absl::string_view text);

// Converts a time of the years 1 to 9999, to the nanosecond, rounded down.
google::protobuf::Timestamp ToTimestamp(absl::Time time);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_SHARED_EVENT_TIME_H_
