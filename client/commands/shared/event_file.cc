#include "client/commands/shared/event_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/commands/shared/event_time.h"
#include "client/files/csv.h"
#include "core/base/brief.h"
#include "core/base/ids.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Numbers texts in the order in which they first appear.
class Numbering {
 public:
  explicit Numbering(std::vector<std::string>& texts) : texts_(texts) {}

  std::int32_t NumberOf(absl::string_view text) {
    const auto next = static_cast<std::int32_t>(texts_.size());
    const auto [entry, is_new] = numbers_.try_emplace(text, next);
    if (is_new) texts_.emplace_back(text);
    return entry->second;
  }

 private:
  std::vector<std::string>& texts_;
  absl::flat_hash_map<std::string, std::int32_t> numbers_;
};

// Adds the flag that helps to the error of a file that lacks a column.
absl::Status WithAdvice(const absl::Status& status,
                        const EventColumns& columns) {
  if (status.ok()) return status;
  const std::array<std::pair<const std::string*, absl::string_view>, 4> advice =
      {{{&columns.customer, "--customer-column names another"},
        {&columns.item, "--item-column names another"},
        {&columns.time, columns.needs_time
                            ? "--time-column names another"
                            : "--time-column names another, or '' if the rows "
                              "are in time order"},
        {&columns.rating, "--rating-column names another"}}};
  for (const auto& [column, flag] : advice) {
    if (!absl::StrContains(status.message(),
                           absl::StrCat(": no column '", *column, "';"))) {
      continue;
    }
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), " (", flag, ")"));
  }
  return status;
}

}  // namespace

std::vector<CLI::Option*> AddColumnFlags(CLI::App& command,
                                         EventColumns& columns) {
  CLI::Option* customer = command
                              .add_option("--customer-column", columns.customer,
                                          "The column of customers")
                              ->type_name("NAME")
                              ->capture_default_str();
  CLI::Option* item =
      command.add_option("--item-column", columns.item, "The column of items")
          ->type_name("NAME")
          ->capture_default_str();
  CLI::Option* time =
      command
          .add_option("--time-column", columns.time,
                      columns.needs_time
                          ? "The column of times"
                          : "The column of times; '' if rows are in time "
                            "order")
          ->type_name("NAME")
          ->capture_default_str();
  if (columns.needs_time) {
    time->check([](const std::string& name) -> std::string {
      return name.empty() ? "got nothing, want a column" : "";
    });
  }
  return {customer, item, time};
}

absl::Status ReadEventRows(
    const std::string& path, const EventColumns& columns,
    absl::FunctionRef<absl::Status(const EventRow&)> visit) {
  EventRow event;
  const std::array<std::pair<const std::string*, absl::string_view*>, 4> parts =
      {{{&columns.customer, &event.customer},
        {&columns.item, &event.item},
        {&columns.time, &event.time},
        {&columns.rating, &event.rating}}};
  std::vector<std::string> names;
  std::vector<absl::string_view*> read;
  for (const auto& [column, part] : parts) {
    if (column->empty()) continue;
    names.push_back(*column);
    read.push_back(part);
  }
  return WithAdvice(ReadCsv(path, names,
                            [&](const CsvRow& row) {
                              for (std::size_t i = 0; i < read.size(); ++i) {
                                *read[i] = row.fields[i];
                              }
                              return visit(event);
                            }),
                    columns);
}

absl::StatusOr<absl::Time> TimeOf(const EventRow& row,
                                  const EventColumns& columns) {
  const std::optional<absl::Time> time = ParseEventTime(row.time);
  if (time.has_value()) return *time;
  return InvalidField(columns.time, absl::StrCat("'", Brief(row.time), "'"),
                      kTimeWanted);
}

absl::StatusOr<EventLog> ReadEvents(const std::string& path,
                                    const EventColumns& columns) {
  EventLog log;
  std::vector<absl::Time> times;
  Numbering customers(log.customer_ids);
  Numbering items(log.item_ids);
  const auto visit = [&](const EventRow& row) -> absl::Status {
    if (row.customer.empty()) {
      return InvalidField(columns.customer, "an empty field", "an id");
    }
    ATTENDANT_RETURN_IF_ERROR(ValidateItemId(row.item, columns.item));
    Event event;
    if (!columns.time.empty()) {
      ATTENDANT_ASSIGN_OR_RETURN(times.emplace_back(), TimeOf(row, columns));
    }
    if (!columns.rating.empty() &&
        (!absl::SimpleAtod(row.rating, &event.rating) ||
         !std::isfinite(event.rating))) {
      return InvalidField(columns.rating,
                          absl::StrCat("'", Brief(row.rating), "'"),
                          "a finite number");
    }
    if (log.events.size() ==
        static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
      return absl::InvalidArgumentError("more than 2,147,483,647 events");
    }
    event.customer = customers.NumberOf(row.customer);
    event.item = items.NumberOf(row.item);
    log.events.push_back(event);
    return absl::OkStatus();
  };
  ATTENDANT_RETURN_IF_ERROR(ReadEventRows(path, columns, visit));
  if (!std::ranges::is_sorted(times)) {
    std::vector<std::size_t> order(times.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return times[a] < times[b];
    });
    std::vector<Event> sorted;
    sorted.reserve(order.size());
    for (const std::size_t i : order) sorted.push_back(log.events[i]);
    log.events = std::move(sorted);
  }
  return log;
}

}  // namespace attendant
