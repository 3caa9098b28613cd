// When something happened, as files and flags say it.
#ifndef ATTENDANT_CLIENT_COMMANDS_EVENT_TIME_H_
#define ATTENDANT_CLIENT_COMMANDS_EVENT_TIME_H_

#include <google/protobuf/timestamp.pb.h>

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace attendant {

// RFC 3339, YYYY-MM-DD with or without HH:MM:SS (UTC), or seconds since 1970;
// nothing for another text.
std::optional<absl::Time> ParseEventTime(const std::string& text);

google::protobuf::Timestamp ToTimestamp(absl::Time time);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_EVENT_TIME_H_
