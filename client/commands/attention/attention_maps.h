// Converts replies with attention weights to pictures, and adds the flags that
// ask for them.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_ATTENTION_MAPS_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_ATTENTION_MAPS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "attendant/v1/attention_service.pb.h"
#include "attendant/v1/sequence_service.pb.h"
#include "client/commands/shared/command.h"
#include "client/picture/attention_map.h"

namespace attendant {

struct PictureFlags {
  std::string svg = {};  // "", "matrix", "lines" or "image"
  bool blocks = false;   // shaded blocks as text

  bool draws_weights() const {
    return blocks || svg == "matrix" || svg == "lines";
  }
};

// Adds --svg, which takes one of `svg_kinds`, and --blocks. `flags` must
// outlive `verb`.
void AddPictureFlags(CLI::App& verb, const std::vector<std::string>& svg_kinds,
                     PictureFlags& flags);

// Throws CLI::ExcludesError if more than one of --svg, --blocks and --json is
// given.
void CheckPictureFlags(const PictureFlags& flags, const Context& context);

// Draws the map as an SVG of kind "matrix" or "lines".
std::string WeightsSvg(const AttentionMap& map, const std::string& kind);

// Names of the tokens that attend and of those attended to.
struct TokenNames {
  std::vector<std::string> sequence;
  std::vector<std::string> attended;  // the memory if given, or the sequence
};

// Names tokens by `words` and `memory_words`, separated by spaces; tokens
// without words by their item ids, or by their positions from 0.
// InvalidArgument if there are words, but not one for each token.
absl::StatusOr<TokenNames> NamesOf(const v1::ContextualizeRequest& request,
                                   const std::string& words,
                                   const std::string& memory_words);

// MapOf returns the errors of CheckShape for a reply of the wrong shape.

// Returns a panel for each head; none if no weights were requested.
absl::StatusOr<AttentionMap> MapOf(const v1::ContextualizeRequest& request,
                                   const v1::ContextualizeResponse& response,
                                   const TokenNames& names);

// Names of items by id. An item without an entry is named by its id.
using ItemNames = absl::flat_hash_map<std::string, std::string>;

// Returns the name of an event, whose index must be one of the request's.
std::string EventName(const v1::RankCandidatesRequest& request,
                      const v1::EventAttribution& event,
                      const ItemNames& names);

// Returns how many of a candidate's events are shown: the first
// `because_count`, or all if there are fewer.
int ShownEvents(const v1::RankedCandidate& candidate, int because_count);

// Returns one panel, the mean over heads: a row for each candidate, and a
// column for each event that is shown with at least one of them, in the order
// of the request. The weight of an event that is not named with a candidate is
// 0, or unknown if the candidate names as many events as the request asked for
// while the request has more.
absl::StatusOr<AttentionMap> MapOf(const v1::RankCandidatesRequest& request,
                                   const v1::RankCandidatesResponse& response,
                                   const ItemNames& names, int because_count);

// Returns a panel for each head with one row: the query attends to the items
// returned. Items are named by the attribute, or by id if they lack it.
absl::StatusOr<AttentionMap> MapOf(const v1::AttendRequest& request,
                                   const v1::AttendResponse& response,
                                   const std::string& attribute);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_ATTENTION_MAPS_H_
