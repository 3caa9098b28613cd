#include "client/commands/event_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/commands/event_time.h"
#include "client/files/csv.h"
#include "core/base/brief.h"
#include "core/base/ids.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Numbers for texts, in the order in which they first appear.
class Numbering {
 public:
  explicit Numbering(std::vector<std::string>& texts) : texts_(texts) {}

  std::int32_t NumberOf(const std::string& text) {
    const auto next = static_cast<std::int32_t>(texts_.size());
    const auto [entry, is_new] = numbers_.try_emplace(text, next);
    if (is_new) texts_.push_back(text);
    return entry->second;
  }

 private:
  std::vector<std::string>& texts_;
  absl::flat_hash_map<std::string, std::int32_t> numbers_;
};

// The error of a file without one of the columns, with the flag that helps.
absl::Status WithAdvice(const absl::Status& status,
                        const EventColumns& columns) {
  const std::array<std::pair<const std::string*, absl::string_view>, 4> advice =
      {{{&columns.customer, "--customer-column names another"},
        {&columns.item, "--item-column names another"},
        {&columns.time,
         "--time-column names another, or '' if the rows are in time order"},
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

absl::StatusOr<EventLog> ReadEvents(const std::string& path,
                                    const EventColumns& columns) {
  std::vector<std::string> names = {columns.customer, columns.item};
  if (!columns.time.empty()) names.push_back(columns.time);
  if (!columns.rating.empty()) names.push_back(columns.rating);
  EventLog log;
  std::vector<absl::Time> times;
  Numbering customers(log.customer_ids);
  Numbering items(log.item_ids);
  const auto visit = [&](const CsvRow& row) -> absl::Status {
    const std::string& customer = row.fields[0];
    const std::string& item = row.fields[1];
    if (customer.empty()) {
      return InvalidField(columns.customer, "an empty field", "an id");
    }
    ATTENDANT_RETURN_IF_ERROR(ValidateItemId(item, columns.item));
    Event event;
    if (!columns.time.empty()) {
      const std::string& text = row.fields[2];
      const std::optional<absl::Time> time = ParseEventTime(text);
      if (!time.has_value()) {
        return InvalidField(columns.time, absl::StrCat("'", Brief(text), "'"),
                            "a time as 2011-12-09T12:50:00Z");
      }
      times.push_back(*time);
    }
    if (!columns.rating.empty()) {
      const std::string& text = row.fields.back();
      if (!absl::SimpleAtod(text, &event.rating) ||
          !std::isfinite(event.rating)) {
        return InvalidField(columns.rating, absl::StrCat("'", Brief(text), "'"),
                            "a finite number");
      }
    }
    if (log.events.size() ==
        static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
      return absl::InvalidArgumentError("more than 2,147,483,647 events");
    }
    event.customer = customers.NumberOf(customer);
    event.item = items.NumberOf(item);
    log.events.push_back(event);
    return absl::OkStatus();
  };
  const absl::Status status = ReadCsv(path, names, visit);
  if (!status.ok()) return WithAdvice(status, columns);
  if (!std::is_sorted(times.begin(), times.end())) {
    std::vector<std::size_t> order(times.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(
        order.begin(), order.end(),
        [&](std::size_t a, std::size_t b) { return times[a] < times[b]; });
    std::vector<Event> sorted;
    sorted.reserve(order.size());
    for (const std::size_t i : order) sorted.push_back(log.events[i]);
    log.events = std::move(sorted);
  }
  return log;
}

}  // namespace attendant
