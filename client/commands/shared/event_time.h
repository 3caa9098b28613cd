// When something happened, as files and flags say it.
#ifndef ATTENDANT_CLIENT_COMMANDS_SHARED_EVENT_TIME_H_
#define ATTENDANT_CLIENT_COMMANDS_SHARED_EVENT_TIME_H_

#include <google/protobuf/timestamp.pb.h>

#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attendant {

// What is wanted in place of a text that is no time.
inline constexpr char kTimeWanted[] =
    "a time of the years 1 to 9999, as 2011-12-09 or 2011-12-09T12:50:00Z";

// RFC 3339, or YYYY-MM-DD with or without HH:MM:SS (UTC), of the years 1 to
// 9999; nothing for another text.
std::optional<absl::Time> ParseDateTime(absl::string_view text);

// The same, or seconds since 1970.
std::optional<absl::Time> ParseEventTime(absl::string_view text);

google::protobuf::Timestamp ToTimestamp(absl::Time time);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_SHARED_EVENT_TIME_H_
