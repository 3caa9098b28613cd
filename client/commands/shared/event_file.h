// Events from a CSV file.
#ifndef ATTENDANT_CLIENT_COMMANDS_SHARED_EVENT_FILE_H_
#define ATTENDANT_CLIENT_COMMANDS_SHARED_EVENT_FILE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/encode/lsi.h"

namespace attendant {

// Names of columns; what an empty one would say is not read.
struct EventColumns {
  std::string customer = "customer_id";
  std::string item = "item_id";
  std::string time = "time";  // empty: the file is in time order
  std::string rating = {};    // empty: each event counts 1
  bool needs_time = false;    // time is not empty
};

// The flags of customer, item and time.
std::vector<CLI::Option*> AddColumnFlags(CLI::App& command,
                                         EventColumns& columns);

// A row as it stands in the file; empty where no column is read.
struct EventRow {
  absl::string_view customer;
  absl::string_view item;
  absl::string_view time;
  absl::string_view rating;
};

// Calls `visit` for each row as ReadCsv does, whose error of a missing column
// comes with the flag that helps.
absl::Status ReadEventRows(
    const std::string& path, const EventColumns& columns,
    absl::FunctionRef<absl::Status(const EventRow&)> visit);

// As ParseEventTime has it. InvalidArgument, naming the column, for another
// text.
absl::StatusOr<absl::Time> TimeOf(const EventRow& row,
                                  const EventColumns& columns);

// Reads events and puts them in time order. InvalidArgument, naming file, row
// and column, for an empty customer, an id that no item can have, or a time or
// rating that can't be read.
absl::StatusOr<EventLog> ReadEvents(const std::string& path,
                                    const EventColumns& columns);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_SHARED_EVENT_FILE_H_
