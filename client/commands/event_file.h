// Events from a CSV file.
#ifndef ATTENDANT_CLIENT_COMMANDS_EVENT_FILE_H_
#define ATTENDANT_CLIENT_COMMANDS_EVENT_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/encode/lsi.h"

namespace attendant {

struct EventColumns {
  std::string customer = "customer_id";
  std::string item = "item_id";
  std::string time = "time";  // empty: the file is in time order
  std::string rating;         // empty: each event counts 1
};

// Reads events and puts them in time order. Times are RFC 3339, YYYY-MM-DD with
// or without HH:MM:SS (UTC), or seconds since 1970. InvalidArgument, naming
// file, row and column, for an empty customer, an id that no item can have, or
// a time or rating that can't be read.
absl::StatusOr<EventLog> ReadEvents(const std::string& path,
                                    const EventColumns& columns);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_EVENT_FILE_H_
