// Reads events from a CSV file.
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

// Names of columns. A column with an empty name is not read.
struct EventColumns {
  std::string customer = "customer_id";
  std::string item = "item_id";
  std::string time = "time";  // empty: the file is in time order
  std::string rating = {};    // empty: each event counts 1
  bool needs_time = false;    // true if `time` must not be empty
};

// Adds --customer-column, --item-column and --time-column, and returns them.
// `columns` must outlive `command`.
std::vector<CLI::Option*> AddColumnFlags(CLI::App& command,
                                         EventColumns& columns);

// A row of the file. Fields are empty where no column is read, and valid until
// the next row.
struct EventRow {
  absl::string_view customer;
  absl::string_view item;
  absl::string_view time;
  absl::string_view rating;
};

// Calls `visit` for each row. Errors of ReadCsv; that of a missing column names
// the flag that chooses another.
absl::Status ReadEventRows(
    const std::string& path, const EventColumns& columns,
    absl::FunctionRef<absl::Status(const EventRow&)> visit);

// Parses the row's time by ParseEventTime. InvalidArgument, naming the column,
// for another text.
absl::StatusOr<absl::Time> TimeOf(const EventRow& row,
                                  const EventColumns& columns);

// Reads events and sorts them by time; events of one time keep their order.
// InvalidArgument, naming file, row and column, for an empty customer, a
// malformed item id, or a malformed time or rating.
absl::StatusOr<EventLog> ReadEvents(const std::string& path,
                                    const EventColumns& columns);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_SHARED_EVENT_FILE_H_
