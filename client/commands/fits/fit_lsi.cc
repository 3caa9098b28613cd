// attendant fit lsi
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/fits/commands.h"
#include "client/commands/fits/fit.h"
#include "client/commands/shared/event_file.h"
#include "client/commands/shared/flags.h"
#include "client/files/npy.h"
#include "client/files/output.h"
#include "core/base/status.h"

namespace attendant {
namespace {

struct LsiFlags {
  std::string events;
  std::string out;
  std::int64_t dim = 64;
  EventColumns columns;
  std::string ratings = "log";
  std::string scale = "none";
  double temperature = 0;  // 0: search
  std::string field = "events";
};

// Adds to the error of a search for which no event can be held out that a given
// temperature needs no search.
absl::Status WithWayOut(const absl::Status& status, const LsiFlags& flags) {
  if (flags.temperature != 0 || FieldOf(status) != "events") return status;
  return absl::Status(
      status.code(),
      absl::StrCat(flags.events,
                   ": too few events to choose a temperature by; give one, as "
                   "in --temperature 0.1 (",
                   status.message(), ")"));
}

absl::Status FitLsiCommand(const LsiFlags& flags, const Context& context) {
  LsiOptions options;
  options.dim = flags.dim;
  options.rating_kind = !flags.columns.rating.empty() ? RatingKind::kExplicit
                        : flags.ratings == "count"    ? RatingKind::kCount
                                                      : RatingKind::kLogCount;
  options.key_scale = flags.scale == "singular"  ? KeyScale::kSingular
                      : flags.scale == "inverse" ? KeyScale::kInverse
                                                 : KeyScale::kNone;
  if (flags.temperature != 0) options.temperature = flags.temperature;
  options.progress = &NoteStep;
  ATTENDANT_RETURN_IF_ERROR(CheckWritableDirectory(flags.out));
  NoteStep(absl::StrCat("reading ", flags.events));
  ATTENDANT_ASSIGN_OR_RETURN(const EventLog log,
                             ReadEvents(flags.events, flags.columns));
  const auto count = [](const auto& list) {
    return static_cast<std::int64_t>(list.size());
  };
  NoteStep(absl::StrCat("read ", CountOf(count(log.events), "event"), " of ",
                        CountOf(count(log.customer_ids), "customer"), " with ",
                        CountOf(count(log.item_ids), "item")));
  const absl::StatusOr<LsiModel> fitted = FitLsi(log, options);
  if (!fitted.ok()) {
    return log.events.empty() ? fitted.status()
                              : WithWayOut(fitted.status(), flags);
  }
  const LsiModel& lsi = *fitted;

  Model model;
  model.key_field.set_name(flags.field);
  model.key_field.set_dimension(static_cast<std::int32_t>(lsi.dim));
  SetDefaults(lsi.defaults, model.key_field);
  model.fit = DefaultsJson(lsi.defaults);
  model.fit["kind"] = "lsi";
  model.fit["ratings"] =
      flags.columns.rating.empty() ? flags.ratings : "explicit";
  model.fit["scale"] = flags.scale;
  model.fit["event_count"] = log.events.size();
  model.fit["customer_count"] = log.customer_ids.size();
  model.fit["item_count"] = log.item_ids.size();
  const std::vector<float> keys(lsi.keys.begin(), lsi.keys.end());
  ATTENDANT_RETURN_IF_ERROR(WriteDirectory(
      flags.out, {{kIdsFile, Lines(log.item_ids)},
                  {kKeysFile, NpyBytes(keys, lsi.dim)},
                  {kSingularValuesFile, NpyBytes(lsi.singular_values)},
                  {kModelFile, ModelJson(model)}}));
  ReportFit(flags.out, count(log.item_ids), flags.dim, model, lsi.defaults,
            context);
  return absl::OkStatus();
}

}  // namespace

void AddFitLsiCommand(CLI::App& fit, Context& context) {
  auto flags = std::make_shared<LsiFlags>();
  CLI::App* lsi = fit.add_subcommand(
      "lsi", "Item keys from events, by latent semantic indexing");
  lsi->add_option("EVENTS.csv", flags->events,
                  "CSV with a header and one event per row; may be gzipped")
      ->required();
  lsi->add_option("--out", flags->out, "The directory to write")
      ->type_name("DIR")
      ->required();
  lsi->add_option("--dim", flags->dim, "Dimensions of a key")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  AddColumnFlags(*lsi, flags->columns);
  CLI::Option* rating =
      lsi->add_option(
             "--rating-column", flags->columns.rating,
             "The column of explicit ratings; the matrix has their mean")
          ->type_name("NAME");
  lsi->add_option("--ratings", flags->ratings,
                  "What n events count without ratings: log(1 + n) or n")
      ->check(CLI::IsMember({"log", "count"}))
      ->capture_default_str()
      ->excludes(rating);
  lsi->add_option("--scale", flags->scale,
                  "Scale of the keys: V, V diag(s) or V diag(1/s)")
      ->check(CLI::IsMember({"none", "singular", "inverse"}))
      ->capture_default_str();
  lsi->add_option("--temperature", flags->temperature,
                  "Use this temperature with dot and sum, without a search "
                  "for score kind, combine kind and temperature")
      ->check(Accepts(&ParsePositive));
  lsi->add_option("--field", flags->field, "The key field's name")
      ->type_name("NAME")
      ->check(Accepts(&ParseFieldName))
      ->capture_default_str();
  lsi->footer(
      "Example:\n"
      "  attendant fit lsi events.csv.gz --dim 64 --out fit/events\n"
      "  attendant catalog create shop --from fit/events\n"
      "  attendant items import shop --from fit/events\n"
      "  attendant attend shop --like 85123A");
  SetVerb(*lsi, context, flags, &FitLsiCommand);
}

}  // namespace attendant
