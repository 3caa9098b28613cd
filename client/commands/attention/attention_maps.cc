#include "client/commands/attention/attention_maps.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/commands/attention/reply_shapes.h"
#include "client/commands/shared/convert.h"
#include "client/picture/svg.h"
#include "core/base/status.h"

namespace attendant {
namespace {

absl::StatusOr<std::vector<std::string>> NamesIn(
    const v1::TokenSequence& sequence, const std::string& words,
    absl::string_view flag) {
  const int count = sequence.has_items() ? sequence.items().ids_size()
                                         : sequence.vectors().vectors_size();
  std::vector<std::string> names =
      absl::StrSplit(words, ' ', absl::SkipWhitespace());
  if (!words.empty()) {
    if (static_cast<int>(names.size()) == count) return names;
    return InvalidField(
        flag, CountOf(static_cast<std::int64_t>(names.size()), "word"),
        absl::StrCat(count, ", one a token"));
  }
  for (int i = 0; i < count; ++i) {
    names.push_back(sequence.has_items() ? sequence.items().ids(i)
                                         : FormatCount(i));
  }
  return names;
}

std::string QueryName(const v1::AttendRequest& request) {
  const v1::Query& query = request.query();
  if (query.has_text()) return query.text();
  if (!query.has_examples()) return "query";
  std::vector<std::string> ids;
  for (const v1::Example& example : query.examples().examples()) {
    ids.push_back(example.id());
  }
  return absl::StrJoin(ids, ", ");
}

}  // namespace

void AddPictureFlags(CLI::App& verb, const std::vector<std::string>& svg_kinds,
                     PictureFlags& flags) {
  constexpr char kPictures[] = "Pictures";
  verb.add_option("--svg", flags.svg,
                  "Print an SVG picture, and nothing else, as in "
                  "--svg=matrix > weights.svg")
      ->check(CLI::IsMember(svg_kinds))
      ->group(kPictures);
  verb.add_flag("--blocks", flags.blocks,
                "Show the weights as a matrix of shaded blocks")
      ->group(kPictures);
}

void CheckPictureFlags(const PictureFlags& flags, const Context& context) {
  if (!flags.svg.empty() && flags.blocks) {
    throw CLI::ExcludesError("--svg", "--blocks");
  }
  if (!context.json) return;
  if (!flags.svg.empty()) throw CLI::ExcludesError("--svg", "--json");
  if (flags.blocks) throw CLI::ExcludesError("--blocks", "--json");
}

std::string WeightsSvg(const AttentionMap& map, const std::string& kind) {
  return kind == "lines" ? LinesSvg(map) : MatrixSvg(map);
}

absl::StatusOr<TokenNames> NamesOf(const v1::ContextualizeRequest& request,
                                   const std::string& words,
                                   const std::string& memory_words) {
  TokenNames names;
  ATTENDANT_ASSIGN_OR_RETURN(names.sequence,
                             NamesIn(request.sequence(), words, "--words"));
  names.attended = names.sequence;
  if (request.has_memory()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        names.attended,
        NamesIn(request.memory(), memory_words, "--memory-words"));
  }
  return names;
}

absl::StatusOr<AttentionMap> MapOf(const v1::ContextualizeRequest& request,
                                   const v1::ContextualizeResponse& response,
                                   const TokenNames& names) {
  ATTENDANT_RETURN_IF_ERROR(CheckShape(response, request, names.sequence.size(),
                                       names.attended.size()));
  AttentionMap map = {.rows = names.sequence, .columns = names.attended};
  for (const v1::AttentionMatrix& head : response.head_weights()) {
    AttentionPanel panel;
    if (response.head_weights_size() > 1) {
      panel.title = absl::StrCat("head ", map.panels.size());
    }
    panel.weights.assign(head.weights().begin(), head.weights().end());
    map.panels.push_back(std::move(panel));
  }
  return map;
}

std::string EventName(const v1::RankCandidatesRequest& request,
                      const v1::EventAttribution& event,
                      const ItemNames& names) {
  const v1::HistoryEvent& from = event.profile()
                                     ? request.profile(event.index())
                                     : request.history(event.index());
  std::string name = from.item_id();
  if (from.has_vector()) name = absl::StrCat("vector ", event.index());
  const auto found = names.find(name);
  if (found != names.end()) name = found->second;
  return event.profile() ? absl::StrCat(name, " (profile)") : name;
}

int ShownEvents(const v1::RankedCandidate& candidate, int because_count) {
  return std::min(candidate.events_size(), because_count);
}

absl::StatusOr<AttentionMap> MapOf(const v1::RankCandidatesRequest& request,
                                   const v1::RankCandidatesResponse& response,
                                   const ItemNames& names, int because_count) {
  ATTENDANT_RETURN_IF_ERROR(CheckShape(response, request));
  using Place = std::pair<bool, int>;  // in the profile; index
  const auto place_of = [](const v1::EventAttribution& event) {
    return Place(event.profile(), event.index());
  };
  std::set<Place> places;
  for (const v1::RankedCandidate& candidate : response.candidates()) {
    for (int e = 0; e < ShownEvents(candidate, because_count); ++e) {
      places.insert(place_of(candidate.events(e)));
    }
  }
  AttentionMap map;
  for (const auto& [profile, index] : places) {
    v1::EventAttribution event;
    event.set_profile(profile);
    event.set_index(index);
    map.columns.push_back(EventName(request, event, names));
  }
  const int event_count = request.history_size() + request.profile_size();
  AttentionPanel panel;
  for (const v1::RankedCandidate& candidate : response.candidates()) {
    const auto found = names.find(candidate.id());
    map.rows.push_back(found == names.end() ? candidate.id() : found->second);
    // A candidate that names as many events as requested may have left out
    // some.
    const bool names_all =
        candidate.events_size() < request.attribution_count() ||
        candidate.events_size() == event_count;
    std::map<Place, double> weights;
    for (const v1::EventAttribution& event : candidate.events()) {
      weights[place_of(event)] = event.weight();
    }
    for (const Place& place : places) {
      const auto weight = weights.find(place);
      panel.weights.push_back(weight != weights.end() ? weight->second
                              : names_all             ? 0
                                                      : kUnknownWeight);
    }
  }
  map.panels.push_back(std::move(panel));
  return map;
}

absl::StatusOr<AttentionMap> MapOf(const v1::AttendRequest& request,
                                   const v1::AttendResponse& response,
                                   const std::string& attribute) {
  ATTENDANT_RETURN_IF_ERROR(CheckShape(response, request));
  AttentionMap map = {.rows = {QueryName(request)}};
  const int head_count =
      request.include_head_weights() ? std::max(response.heads_size(), 1) : 1;
  map.panels.resize(static_cast<std::size_t>(head_count));
  for (int h = 0; h < head_count && head_count > 1; ++h) {
    map.panels[h].title =
        absl::StrCat("head ", h, ": ", response.heads(h).key_field());
  }
  for (const v1::AttendedItem& item : response.items()) {
    const auto found = item.attributes().find(attribute);
    map.columns.push_back(found == item.attributes().end()
                              ? item.id()
                              : AttributeText(found->second));
    for (std::size_t p = 0; p < map.panels.size(); ++p) {
      map.panels[p].weights.push_back(
          head_count > 1 ? item.head_weights(static_cast<int>(p))
                         : item.weight());
    }
  }
  return map;
}

}  // namespace attendant
