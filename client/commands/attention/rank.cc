// attendant rank
#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/api/batches.h"
#include "client/api/wire_vector.h"
#include "client/commands/attention/approximation_flags.h"
#include "client/commands/attention/attention_maps.h"
#include "client/commands/attention/commands.h"
#include "client/commands/attention/mask_flags.h"
#include "client/commands/attention/rank_json.h"
#include "client/commands/attention/reply_shapes.h"
#include "client/commands/attention/sequence_flags.h"
#include "client/commands/attention/sequence_report.h"
#include "client/commands/attention/shown_attributes.h"
#include "client/commands/shared/convert.h"
#include "client/commands/shared/event_file.h"
#include "client/commands/shared/flags.h"
#include "client/files/ids.h"
#include "client/picture/blocks.h"
#include "core/base/status.h"

namespace attendant {
namespace {

struct RankFlags {
  std::string catalog;
  std::string field;
  std::string token;
  std::vector<std::string> candidates;
  std::string candidate_file;
  std::string near;
  std::int32_t near_count = 0;
  MaskFlags masks;
  bool include_events = false;
  std::vector<std::string> events;
  std::string history;
  EventColumns columns = {.needs_time = true};
  std::string customer;
  std::vector<std::string> profile;
  std::vector<std::string> profile_vectors;
  std::string time;
  std::string model;
  std::string score;
  double temperature = 0;
  std::string activation;
  std::int32_t result_count = 0;
  std::int32_t because_count = 3;
  std::string show;
  ApproximationFlags approximation;
  PictureFlags picture;
};

constexpr int kMaxNamed = 100;  // events with each candidate

absl::Status SetCandidates(const RankFlags& flags, v1::Candidates& candidates) {
  if (!flags.near.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto vector, ParseVector(flags.near));
    v1::CandidateQuery& query = *candidates.mutable_query();
    *query.mutable_vector() = ToVector(vector);
    if (flags.near_count != 0) query.set_candidate_count(flags.near_count);
    query.set_exclude_events(!flags.include_events);
    return SetMasks(flags.masks, query);
  }
  auto& ids = *candidates.mutable_items()->mutable_ids();
  ids.Add(flags.candidates.begin(), flags.candidates.end());
  if (flags.candidate_file.empty()) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const auto from_file,
                             ReadIds(flags.candidate_file));
  ids.Add(from_file.begin(), from_file.end());
  return absl::OkStatus();
}

absl::Status SetEvents(const RankFlags& flags,
                       v1::RankCandidatesRequest& request) {
  for (const std::string& event : flags.events) {
    ATTENDANT_ASSIGN_OR_RETURN(*request.add_history(),
                               ParseHistoryEvent(event));
  }
  if (!flags.history.empty()) {
    ATTENDANT_RETURN_IF_ERROR(
        ReadHistory(flags.history, flags.columns, flags.customer, request));
  }
  for (const std::string& id : flags.profile) {
    request.add_profile()->set_item_id(id);
  }
  for (const std::string& text : flags.profile_vectors) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto vector, ParseVector(text));
    *request.add_profile()->mutable_vector() = ToVector(vector);
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::RankCandidatesRequest> ToRequest(const RankFlags& flags) {
  v1::RankCandidatesRequest request;
  request.set_catalog(flags.catalog);
  request.set_key_field(flags.field);
  request.set_state_token(flags.token);
  ATTENDANT_RETURN_IF_ERROR(
      SetCandidates(flags, *request.mutable_candidates()));
  ATTENDANT_RETURN_IF_ERROR(SetEvents(flags, request));
  if (!flags.time.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(*request.mutable_time(),
                               ParseTimeFlag(flags.time));
  }
  if (!flags.model.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(*request.mutable_model(),
                               ParseModelReference(flags.model));
  }
  request.set_score_kind(FromFlag<v1::ScoreKind>(flags.score));
  if (flags.temperature != 0) request.set_temperature(flags.temperature);
  request.set_activation_kind(FromFlag<v1::ActivationKind>(flags.activation));
  if (flags.result_count != 0) request.set_result_count(flags.result_count);
  request.set_attribution_count(flags.because_count);
  if (flags.picture.draws_weights()) {
    // A picture shows weights that the reply would leave out, which aren't 0.
    request.set_attribution_count(
        std::clamp(request.history_size() + request.profile_size(),
                   flags.because_count, kMaxNamed));
  }
  if (flags.approximation.any()) {
    ATTENDANT_ASSIGN_OR_RETURN(*request.mutable_approximation(),
                               ToApproximation(flags.approximation));
  }
  return request;
}

// Reads the items that are shown, with the attribute of --show.
absl::StatusOr<ItemsById> ShownItems(const v1::RankCandidatesRequest& request,
                                     const v1::RankCandidatesResponse& response,
                                     const RankFlags& flags, Client& client) {
  std::set<std::string> ids;
  for (const v1::RankedCandidate& candidate : response.candidates()) {
    ids.insert(candidate.id());
    for (int e = 0; e < ShownEvents(candidate, flags.because_count); ++e) {
      const v1::EventAttribution& event = candidate.events(e);
      const v1::HistoryEvent& from = event.profile()
                                         ? request.profile(event.index())
                                         : request.history(event.index());
      if (!from.has_vector()) ids.insert(from.item_id());
    }
  }
  ItemsById items;
  v1::BatchGetItemsRequest get;
  get.set_catalog(request.catalog());
  get.mutable_read_mask()->add_paths(absl::StrCat("attributes.", flags.show));
  const std::vector<std::string> shown(ids.begin(), ids.end());
  const absl::Status status = SendInBatches(
      static_cast<std::int64_t>(shown.size()),
      [&](std::int64_t begin, std::int64_t end) -> absl::Status {
        get.mutable_ids()->Assign(shown.begin() + begin, shown.begin() + end);
        ATTENDANT_ASSIGN_OR_RETURN(const auto got, client.BatchGetItems(get));
        for (const v1::Item& item : got.items()) items[item.id()] = item;
        return absl::OkStatus();
      });
  if (!status.ok()) {
    return ErrorOfShown(status, {flags.show}, flags.catalog, client);
  }
  return items;
}

// Returns the names of the items that have the attribute.
ItemNames NamesBy(const std::string& attribute, const ItemsById& items) {
  ItemNames names;
  for (const auto& [id, item] : items) {
    const auto found = item.attributes().find(attribute);
    if (found != item.attributes().end()) {
      names[id] = AttributeText(found->second);
    }
  }
  return names;
}

absl::Status RunRank(const RankFlags& flags, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto request, ToRequest(flags));
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  const auto ranked = client->RankCandidates(request);
  if (!ranked.ok()) {
    const bool history_of_all = FieldOf(ranked.status()) == "history" &&
                                !flags.history.empty() &&
                                flags.customer.empty();
    return history_of_all
               ? WithHint(ranked.status(),
                          "--customer ID takes the events of one customer")
               : ranked.status();
  }
  const v1::RankCandidatesResponse& response = *ranked;
  ATTENDANT_RETURN_IF_ERROR(CheckShape(response, request));
  ItemsById items;
  if (!flags.show.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(items,
                               ShownItems(request, response, flags, *client));
  }
  if (context.json) {
    Print(RankJson(request, response, items));
    return absl::OkStatus();
  }
  const ItemNames names = NamesBy(flags.show, items);
  AttentionMap map;
  if (flags.picture.draws_weights()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        map, MapOf(request, response, names, flags.because_count));
  }
  if (!flags.picture.svg.empty()) {
    Print(WeightsSvg(map, flags.picture.svg));
    return absl::OkStatus();
  }
  Print(RankReport(request, response,
                   {.names = names,
                    .because_count = flags.because_count,
                    .style = context.style}));
  if (flags.picture.blocks) Print("\n" + MatrixBlocks(map, context.style));
  return absl::OkStatus();
}

void AddCandidateFlags(CLI::App& verb, RankFlags& flags) {
  constexpr char kCandidates[] = "Candidates";
  CLI::Option* candidate =
      AddRepeated(verb, "--candidate", flags.candidates, "An item to rank")
          ->type_name("ID")
          ->group(kCandidates);
  CLI::Option* file = verb.add_option("--candidate-file", flags.candidate_file,
                                      "Ids of items to rank, one a line")
                          ->type_name("FILE")
                          ->group(kCandidates);
  CLI::Option* near =
      verb.add_option("--near", flags.near,
                      "Rank the items of highest logit for a query vector "
                      "0.1,0.2,..., without those of history and profile")
          ->type_name("VECTOR")
          ->check(Accepts(&ParseVector))
          ->excludes(candidate)
          ->excludes(file)
          ->group(kCandidates);
  verb.add_option("--near-count", flags.near_count,
                  "Number of items near the vector. Default 100")
      ->check(CLI::Range(1, 4096))
      ->needs(near)
      ->group(kCandidates);
  for (CLI::Option* option : AddMaskFlags(verb, flags.masks)) {
    option->needs(near)->group(kCandidates);
  }
  verb.add_flag("--include-events", flags.include_events,
                "Rank items of history and profile as well")
      ->needs(near)
      ->group(kCandidates);
}

void AddHistoryFlags(CLI::App& verb, RankFlags& flags) {
  constexpr char kHistory[] = "History";
  AddRepeated(verb, "--event", flags.events,
              "What the user did, as ID=TIME, with TIME as 2011-12-09, "
              "2011-12-09T12:50:00Z or seconds since 1970")
      ->type_name("ID=TIME")
      ->check(Accepts(&ParseHistoryEvent))
      ->group(kHistory);
  CLI::Option* history =
      verb.add_option("--history", flags.history,
                      "Events in FILE.csv, one a row after a header; may be "
                      "gzipped")
          ->type_name("FILE")
          ->group(kHistory);
  verb.add_option("--customer", flags.customer,
                  "Only the file's events of this customer")
      ->type_name("ID")
      ->needs(history)
      ->group(kHistory);
  for (CLI::Option* column : AddColumnFlags(verb, flags.columns)) {
    column->needs(history)->group(kHistory);
  }
  AddRepeated(verb, "--profile", flags.profile,
              "An item that the user likes at any time")
      ->type_name("ID")
      ->group(kHistory);
  AddRepeated(verb, "--profile-vector", flags.profile_vectors,
              "A vector that describes the user: 0.1,0.2,...")
      ->type_name("VECTOR")
      ->check(Accepts(&ParseVector))
      ->group(kHistory);
  verb.add_option("--time", flags.time,
                  "The current time: later events weigh 0. Default: after all "
                  "events")
      ->type_name("TIME")
      ->check(Accepts(&ParseTimeFlag))
      ->group(kHistory);
}

void AddScoreFlags(CLI::App& verb, RankFlags& flags) {
  AddTokenFlag(verb, flags.token);
  verb.add_option("--field", flags.field,
                  "The key field. Default: the catalog's first")
      ->type_name("FIELD");
  verb.add_option("--model", flags.model,
                  "A multi-head model, NAME or NAME:VERSION. Default: keys are "
                  "not projected")
      ->type_name("NAME")
      ->check(Accepts(&ParseModelReference));
  verb.add_option("--score", flags.score, "Score kind, in place of the field's")
      ->check(CLI::IsMember({"dot", "scaled_dot", "cosine"}));
  verb.add_option("--temperature", flags.temperature,
                  "Sharpness: small picks the best, large averages. Default: "
                  "the field's")
      ->check(Accepts(&ParsePositive));
  verb.add_option("--activation", flags.activation,
                  "How weights follow from logits. Default softmax")
      ->check(CLI::IsMember({"softmax", "sigmoid", "none"}));
  verb.add_option("-k,--results", flags.result_count,
                  "Candidates shown. Default: all")
      ->check(CLI::Range(1, 4096));
  verb.add_option(
          "--because", flags.because_count,
          "Events shown with each candidate; a picture has a column for each "
          "event shown with any")
      ->check(CLI::Range(0, kMaxNamed))
      ->capture_default_str();
  verb.add_option("--show", flags.show,
                  "Show this attribute in place of the items' ids")
      ->type_name("NAME");
}

}  // namespace

void AddRankCommand(CLI::App& app, Context& context) {
  auto flags = std::make_shared<RankFlags>();
  CLI::App* verb = app.add_subcommand(
      "rank",
      "Rank candidates by a user's history: each attends over the events and "
      "is scored by the result");
  verb->add_option("CATALOG", flags->catalog, "The catalog")->required();
  AddCandidateFlags(*verb, *flags);
  AddHistoryFlags(*verb, *flags);
  AddScoreFlags(*verb, *flags);
  AddApproximationFlags(*verb, flags->approximation);
  AddPictureFlags(*verb, {"matrix", "lines"}, flags->picture);
  verb->footer(
      "Examples:\n"
      "  attendant rank shop --candidate 85123A --candidate 22423 --history "
      "events.csv.gz --customer c1011\n"
      "  attendant rank shop --candidate-file ids.txt --event "
      "71053=2011-06-01 --event 84029G=2011-07-15 --time 2011-07-01\n"
      "  attendant rank shop --near 0.1,0.2 --filter 'price < 5' --profile "
      "71053 -k 10");
  verb->final_callback([verb, flags, &context] {
    if (flags->candidates.empty() && flags->candidate_file.empty() &&
        flags->near.empty()) {
      throw CLI::RequiredError("--candidate, --candidate-file or --near");
    }
    if (flags->events.empty() && flags->history.empty() &&
        flags->profile.empty() && flags->profile_vectors.empty()) {
      throw CLI::RequiredError(
          "--event, --history, --profile or --profile-vector");
    }
    if (flags->activation == "sigmoid" || flags->activation == "none") {
      const std::string activation = "--activation=" + flags->activation;
      if (flags->picture.draws_weights()) {
        throw CLI::ExcludesError(activation, "--svg and --blocks");
      }
      if (flags->approximation.any()) {
        throw CLI::ExcludesError(activation, "--lsh and --linformer");
      }
    }
    if (flags->picture.draws_weights() && flags->because_count == 0) {
      throw CLI::ExcludesError("--svg and --blocks", "--because 0");
    }
    if (flags->approximation.linformer_rows != 0) {
      if (verb->count("--because") > 0 || flags->picture.draws_weights()) {
        throw CLI::ExcludesError("--linformer",
                                 "--because, --svg and --blocks");
      }
      flags->because_count = 0;  // rows are reduced, so no event has a weight
    }
    CheckPictureFlags(flags->picture, context);
    context.Run([&](const Context& c) { return RunRank(*flags, c); });
  });
}

}  // namespace attendant
