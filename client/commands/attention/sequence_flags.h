// Flags and files of sequences, histories and models as messages.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_SEQUENCE_FLAGS_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_SEQUENCE_FLAGS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attendant/v1/model_service.pb.h"
#include "attendant/v1/sequence_service.pb.h"
#include "client/commands/shared/event_file.h"

namespace attendant {

// "ID=TIME", split at the last '=', since ids may contain it; TIME as
// ParseEventTime has it.
absl::StatusOr<v1::HistoryEvent> ParseHistoryEvent(const std::string& flag);

// Adds the rows of a CSV file; if `customer` is not empty, only those of that
// customer. InvalidArgument, naming file and row, for what is not an id or a
// time, or if no row is left.
absl::Status ReadHistory(const std::string& path, EventColumns columns,
                         const std::string& customer,
                         v1::RankCandidatesRequest& request);

// The rows of a .npy, .fvecs or .txt file as tokens.
absl::Status ReadTokens(const std::string& path, v1::TokenSequence& sequence);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_SEQUENCE_FLAGS_H_
