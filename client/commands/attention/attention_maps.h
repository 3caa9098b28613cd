// Replies with attention weights as pictures, and the flags that ask for them.
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
  bool blocks = false;   // shaded, in the terminal

  bool draws_weights() const {
    return blocks || svg == "matrix" || svg == "lines";
  }
};

// Adds --svg, of these kinds, and --blocks.
void AddPictureFlags(CLI::App& verb, const std::vector<std::string>& svg_kinds,
                     PictureFlags& flags);

// Throws CLI::ExcludesError if two of --svg, --blocks and --json ask for other
// outputs.
void CheckPictureFlags(const PictureFlags& flags, const Context& context);

// The SVG that was asked for as "matrix" or "lines".
std::string WeightsSvg(const AttentionMap& map, const std::string& kind);

// What tokens, candidates and events are called.
struct TokenNames {
  std::vector<std::string> sequence;
  std::vector<std::string> attended;  // of the memory, if there is one
};

// The words given, parted by spaces, else ids of items, else positions.
// InvalidArgument if there are words, but not one for each token.
absl::StatusOr<TokenNames> NamesOf(const v1::ContextualizeRequest& request,
                                   const std::string& words,
                                   const std::string& memory_words);

// The maps below refuse what CheckShape refuses.

// A panel a head, of which there is none if no weights were asked for.
absl::StatusOr<AttentionMap> MapOf(const v1::ContextualizeRequest& request,
                                   const v1::ContextualizeResponse& response,
                                   const TokenNames& names);

// Names of items by id; ids that it lacks are names.
using ItemNames = absl::flat_hash_map<std::string, std::string>;

// The name of an entry of a history, or of a profile, that there is.
std::string EventName(const v1::RankCandidatesRequest& request,
                      const v1::EventAttribution& event,
                      const ItemNames& names);

// The events that are shown with a candidate, of those named with it: the
// first, at most `because_count`.
int ShownEvents(const v1::RankedCandidate& candidate, int because_count);

// One panel, the mean over heads: candidates attend to the events that are
// shown with some of them, in their order. A weight on an event that is not
// named with a candidate is 0, or unknown where as many are named as the
// request asked for, and there are more.
absl::StatusOr<AttentionMap> MapOf(const v1::RankCandidatesRequest& request,
                                   const v1::RankCandidatesResponse& response,
                                   const ItemNames& names, int because_count);

// A panel a head, of one row: the query attends to the items returned, which
// are called by the attribute, or by id without one.
absl::StatusOr<AttentionMap> MapOf(const v1::AttendRequest& request,
                                   const v1::AttendResponse& response,
                                   const std::string& attribute);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_ATTENTION_MAPS_H_
