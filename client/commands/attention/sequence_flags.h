// Converts flags and files of sequences and histories to messages.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_SEQUENCE_FLAGS_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_SEQUENCE_FLAGS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attendant/v1/model_service.pb.h"
#include "attendant/v1/sequence_service.pb.h"
#include "client/commands/shared/event_file.h"

namespace attendant {

// Parses "ID=TIME", split at the last '=' since ids may contain one. TIME is
// parsed by ParseEventTime.
absl::StatusOr<v1::HistoryEvent> ParseHistoryEvent(const std::string& flag);

// Adds the rows of a CSV file to the request's history; if `customer` is not
// empty, only the rows of that customer. InvalidArgument, naming file and row,
// for a malformed id or time, or if no row was added.
absl::Status ReadHistory(const std::string& path, EventColumns columns,
                         const std::string& customer,
                         v1::RankCandidatesRequest& request);

// Adds the rows of a .npy, .fvecs, .txt or .csv file as tokens.
absl::Status ReadTokens(const std::string& path, v1::TokenSequence& sequence);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_SEQUENCE_FLAGS_H_
