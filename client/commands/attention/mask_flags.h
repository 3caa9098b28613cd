// Flags that restrict which items may be in an answer.
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

// Adds --deny, --deny-file and --filter, and returns these options.
std::vector<CLI::Option*> AddMaskFlags(CLI::App& verb, MaskFlags& flags);

// Returns the flags that keep items out of an answer: those of "--filter",
// "--allow", "--deny" and "the examples" that the request has.
std::vector<std::string> MasksOf(const v1::AttendRequest& request);

// Returns "--filter, --deny and the events" for these three; not empty.
std::string ListOf(std::vector<std::string> masks);

// Adds `ids`, and the ids in the file at `path` unless that is empty.
absl::Status AddIds(const std::vector<std::string>& ids,
                    const std::string& path, v1::IdList& list);

// Sets the masks of a query, which is an AttendRequest or a CandidateQuery.
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
