// Flags of queries that say which items may be in the answer.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_MASK_FLAGS_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_MASK_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "attendant/v1/attention_service.pb.h"
#include "core/base/status.h"

namespace attendant {

struct MaskFlags {
  std::vector<std::string> deny;
  std::string deny_file;
  std::string filter;
};

// The options that were added.
std::vector<CLI::Option*> AddMaskFlags(CLI::App& verb, MaskFlags& flags);

// The ids, and those of a file if `path` is not empty.
absl::Status AddIds(const std::vector<std::string>& ids,
                    const std::string& path, v1::IdList& list);

// Of an AttendRequest or a CandidateQuery.
template <typename Query>
absl::Status SetMasks(const MaskFlags& flags, Query& query) {
  if (!flags.deny.empty() || !flags.deny_file.empty()) {
    ATTENDANT_RETURN_IF_ERROR(
        AddIds(flags.deny, flags.deny_file, *query.mutable_deny_list()));
  }
  query.set_filter(flags.filter);
  return absl::OkStatus();
}

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_MASK_FLAGS_H_
