#include "client/commands/attention/sequence_flags.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/api/wire_vector.h"
#include "client/commands/shared/event_time.h"
#include "client/commands/shared/flags.h"
#include "client/files/input.h"
#include "client/files/vector_file.h"
#include "core/base/ids.h"
#include "core/base/status.h"

namespace attendant {

absl::StatusOr<v1::HistoryEvent> ParseHistoryEvent(const std::string& flag) {
  const std::size_t split = flag.rfind('=');
  if (split == std::string::npos || split == 0) {
    return Malformed(flag, absl::StrCat("ID=TIME with ", kTimeWanted));
  }
  v1::HistoryEvent event;
  event.set_item_id(flag.substr(0, split));
  ATTENDANT_ASSIGN_OR_RETURN(*event.mutable_time(),
                             ParseTimeFlag(flag.substr(split + 1)));
  return event;
}

absl::Status ReadHistory(const std::string& path, EventColumns columns,
                         const std::string& customer,
                         v1::RankCandidatesRequest& request) {
  // A file of one customer's events needs no customer column.
  if (customer.empty()) columns.customer.clear();
  bool found = false;
  const auto visit = [&](const EventRow& row) -> absl::Status {
    if (row.customer != customer) return absl::OkStatus();
    ATTENDANT_RETURN_IF_ERROR(ValidateItemId(row.item, columns.item));
    ATTENDANT_ASSIGN_OR_RETURN(const absl::Time time, TimeOf(row, columns));
    v1::HistoryEvent* event = request.add_history();
    event->set_item_id(std::string(row.item));
    *event->mutable_time() = ToTimestamp(time);
    found = true;
    return absl::OkStatus();
  };
  ATTENDANT_RETURN_IF_ERROR(ReadEventRows(path, columns, visit));
  if (found) return absl::OkStatus();
  return FileError(path,
                   customer.empty()
                       ? "no events"
                       : absl::StrCat("no event of customer '", customer, "'"));
}

absl::Status ReadTokens(const std::string& path, v1::TokenSequence& sequence) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto file, OpenVectorFile(path));
  std::vector<float> components(static_cast<std::size_t>(file->dim()));
  for (std::int64_t row = 0; row < file->row_count(); ++row) {
    ATTENDANT_RETURN_IF_ERROR(file->ReadRow(row, components));
    *sequence.mutable_vectors()->add_vectors() = ToVector(components);
  }
  return absl::OkStatus();
}

}  // namespace attendant
