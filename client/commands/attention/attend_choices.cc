#include "client/commands/attention/attend_choices.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/commands/shared/flags.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Parses "NAME" or "NAME=FACTOR".
absl::StatusOr<v1::Bias> ParseBias(const std::string& flag) {
  v1::Bias bias;
  const std::size_t split = flag.find('=');
  bias.set_attribute(flag.substr(0, split));
  if (split != std::string::npos) {
    double factor = 0;
    if (!absl::SimpleAtod(flag.substr(split + 1), &factor) ||
        !std::isfinite(factor)) {
      return Malformed(flag, "NAME or NAME=FACTOR");
    }
    bias.set_factor(factor);
  }
  if (bias.attribute().empty()) {
    return Malformed(flag, "NAME or NAME=FACTOR");
  }
  return bias;
}

// Parses a duration as absl::ParseDuration does, or a number of days as "30d".
// Returns false for another text.
bool ParseHalfLife(absl::string_view text, absl::Duration& half_life) {
  double days = 0;
  absl::string_view number = text;
  if (absl::ConsumeSuffix(&number, "d") && absl::SimpleAtod(number, &days)) {
    half_life = days * absl::Hours(24);
    return std::isfinite(days);
  }
  return absl::ParseDuration(text, &half_life);
}

// Parses "NAME=DURATION", as in added=72h.
absl::StatusOr<v1::Bias> ParseDecay(const std::string& flag) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto parts, ParseAssignment(flag));
  absl::Duration half_life;
  if (!ParseHalfLife(parts.second, half_life) ||
      half_life <= absl::ZeroDuration() ||
      half_life == absl::InfiniteDuration()) {
    return Malformed(flag, "NAME=HALF_LIFE with a duration such as 30d or 72h");
  }
  v1::Bias bias;
  bias.set_attribute(parts.first);
  const std::int64_t seconds = absl::ToInt64Seconds(half_life);
  bias.mutable_half_life()->set_seconds(seconds);
  bias.mutable_half_life()->set_nanos(static_cast<std::int32_t>(
      absl::ToInt64Nanoseconds(half_life - absl::Seconds(seconds))));
  return bias;
}

// Parses "NAME=COUNT", as in brand=2.
absl::StatusOr<v1::CrowdingLimit> ParseCrowdingLimit(const std::string& flag) {
  const auto parts = ParseAssignment(flag);
  v1::CrowdingLimit limit;
  std::int32_t max_count = 0;
  if (!parts.ok() || !absl::SimpleAtoi(parts->second, &max_count) ||
      max_count < 1) {
    return Malformed(flag,
                     "NAME=COUNT with a count of 1 or more, as in brand=2");
  }
  limit.set_attribute(parts->first);
  limit.set_max_count(max_count);
  return limit;
}

// Parses FIELD[=TEMPERATURE][:WEIGHT].
absl::StatusOr<v1::Head> ParseHead(const std::string& flag) {
  v1::Head head;
  std::string rest = flag;
  if (const std::size_t colon = rest.find(':'); colon != std::string::npos) {
    ATTENDANT_ASSIGN_OR_RETURN(const double weight,
                               ParsePositive(rest.substr(colon + 1)));
    head.set_weight(weight);
    rest.resize(colon);
  }
  if (const std::size_t split = rest.find('='); split != std::string::npos) {
    ATTENDANT_ASSIGN_OR_RETURN(const double temperature,
                               ParsePositive(rest.substr(split + 1)));
    head.set_temperature(temperature);
    rest.resize(split);
  }
  if (rest.empty()) {
    return Malformed(flag,
                     "FIELD, FIELD=TEMPERATURE, FIELD:WEIGHT or "
                     "FIELD=TEMPERATURE:WEIGHT");
  }
  head.set_key_field(rest);
  return head;
}

void AddScanFlags(CLI::App& attend, AttendChoices& choices) {
  CLI::Option* recall =
      attend
          .add_option("--recall", choices.recall,
                      "Share of the exact shortlist to find, in (0, 1]; with "
                      "1 the answer is proven exact. Default: that of the "
                      "index's training (IVF .85, others .8); .99 for AUTO "
                      "with fewer than 20,000 keys; 1 for shortlists above 100")
          ->check(CLI::Validator(Accepts(&ParseShare), ""))
          ->group("Scan");
  attend
      .add_option("--probe-count", choices.probe_count,
                  "For experts: how much of the index to search, in IVF "
                  "lists, HNSW candidates, LSH buckets or rescored PQ keys")
      ->check(CLI::PositiveNumber)
      ->excludes(recall)
      ->excludes(attend.get_option("--exact"))
      ->excludes(attend.get_option("--allow"))
      ->excludes(attend.get_option("--allow-file"))
      ->group("Scan");
  attend
      .add_option(
          "--mass-precision", choices.mass_precision,
          "Largest error of log_partition, for 95 % of queries. Default: "
          "whatever the scan yields; 0.02 if the attention of the whole "
          "catalog is needed; with --min-mass P at most (1 - P) / 4")
      ->check(CLI::Validator(Accepts(&ParsePositive), ""))
      ->group("Scan");
  attend
      .add_option("--mass-method", choices.mass_method,
                  "How masses are computed: estimate (an interval, never "
                  "unknown), bound (a guaranteed interval) or exact (scores "
                  "every key). Default: whatever the index yields")
      ->check(CLI::IsMember({"estimate", "bound", "exact"}))
      ->group("Scan");
}

void AddSelectFlags(CLI::App& attend, CLI::Option* results,
                    AttendChoices& choices) {
  CLI::Option* hard = attend
                          .add_flag("--hard", choices.hard,
                                    "The one best item, with weight exactly 1")
                          ->excludes(results)
                          ->group("Choice");
  CLI::Option* sample =
      attend
          .add_flag("--sample", choices.sample,
                    "Draw items in proportion to their weights over the "
                    "catalog, and show the probability of each draw")
          ->excludes(hard)
          ->group("Choice");
  attend
      .add_flag("--with-replacement", choices.with_replacement,
                "Draw each item independently, so that it may be drawn again")
      ->needs(sample)
      ->group("Choice");
  attend
      .add_option("--seed", choices.seed,
                  "Seed of the draws, by default random. A seed draws the same "
                  "items until something is written or merged, or the server "
                  "restarts; with --exact and without replacement, as long as "
                  "the items are the same")
      ->type_name("INTEGER")
      ->check(CLI::Validator(Accepts(&ParseInteger), ""))
      ->needs(sample)
      ->group("Choice");
  attend
      .add_option("--min-mass", choices.min_mass,
                  "Return the fewest items that hold this share of the "
                  "catalog's attention, in (0, 1]; --results is then the "
                  "limit, by default 1000")
      ->check(CLI::Validator(Accepts(&ParseShare), ""))
      ->excludes(hard)
      ->excludes(sample)
      ->group("Choice");
  AddRepeated(attend, "--max-per", choices.crowding_limits,
              "Return at most COUNT items with the same value of an attribute, "
              "and the next best in place of the others: NAME=COUNT, as in "
              "brand=2")
      ->type_name("NAME=COUNT")
      ->check(CLI::Validator(Accepts(&ParseCrowdingLimit), ""))
      ->excludes(hard)
      ->excludes(sample)
      ->group("Choice");
  attend
      .add_option("--activation", choices.activation,
                  "How logits become weights. Default softmax")
      ->check(CLI::IsMember({"softmax", "sigmoid", "none"}))
      ->group("Choice");
}

void AddScoreFlags(CLI::App& attend, AttendChoices& choices) {
  attend
      .add_option("--score", choices.score,
                  "Score kind, in place of the field's")
      ->check(CLI::IsMember(
          {"dot", "scaled_dot", "cosine", "bilinear", "additive"}))
      ->group("Score");
  CLI::Option* model =
      attend
          .add_option("--model", choices.model,
                      "Attention model, in place of the field's: NAME or "
                      "NAME:VERSION")
          ->type_name("NAME")
          ->check(CLI::Validator(Accepts(&ParseModelReference), ""))
          ->group("Score");
  AddRepeated(attend, "--head", choices.heads,
              "Attend over several key fields at once, or over one at "
              "several temperatures: FIELD, FIELD=TEMPERATURE, FIELD:WEIGHT or "
              "FIELD=TEMPERATURE:WEIGHT; an item's weight is the mean over "
              "heads, by their weights, by default 1")
      ->type_name("FIELD")
      ->check(CLI::Validator(Accepts(&ParseHead), ""))
      ->excludes(model)
      ->excludes(attend.get_option("--field"))
      ->group("Score");
  AddRepeated(attend, "--bias", choices.biases,
              "Add an attribute to the logits: NAME or NAME=FACTOR")
      ->type_name("NAME")
      ->check(CLI::Validator(Accepts(&ParseBias), ""))
      ->group("Score");
  CLI::Option* decay =
      AddRepeated(attend, "--decay", choices.decays,
                  "Halve the weight with each half-life since a timestamp "
                  "attribute: NAME=HALF_LIFE, as in added=30d or added=72h")
          ->type_name("NAME=DURATION")
          ->check(CLI::Validator(Accepts(&ParseDecay), ""))
          ->group("Score");
  attend
      .add_option("--time", choices.time,
                  "The current time for --decay. Default: the server's clock")
      ->type_name("TIME")
      ->check(CLI::Validator(Accepts(&ParseTimeFlag), ""))
      ->needs(decay)
      ->group("Score");
}

}  // namespace

void AddChoiceFlags(CLI::App& attend, CLI::Option* results,
                    AttendChoices& choices) {
  AddSelectFlags(attend, results, choices);
  AddScoreFlags(attend, choices);
  AddScanFlags(attend, choices);
}

absl::Status ErrorOfChoices(const absl::Status& error,
                            const AttendChoices& choices) {
  // The request's biases are those of --bias, then those of --decay.
  const std::string field = FieldOf(error).value_or("");
  for (std::size_t i = 0; i < choices.biases.size() + choices.decays.size();
       ++i) {
    if (field != absl::StrCat("biases[", i, "].half_life")) continue;
    const bool is_decay = i >= choices.biases.size();
    const std::string& flag = is_decay
                                  ? choices.decays[i - choices.biases.size()]
                                  : choices.biases[i];
    const std::string name = flag.substr(0, flag.find('='));
    if (is_decay && absl::StrContains(error.message(), "for a number")) {
      return InvalidField(
          "--decay", absl::StrCat(name, ", a number"),
          absl::StrCat("a timestamp; --bias ", name, "=FACTOR adds a number"));
    }
    if (!is_decay) {
      return InvalidField("--bias", absl::StrCat(name, ", a timestamp"),
                          absl::StrCat("a number; --decay ", name,
                                       "=HALF_LIFE takes a timestamp"));
    }
  }
  return error;
}

absl::Status SetChoices(const AttendChoices& choices,
                        v1::AttendRequest& request) {
  if (choices.hard) request.set_select_kind(v1::SELECT_KIND_HARD);
  if (choices.sample) request.set_select_kind(v1::SELECT_KIND_SAMPLE);
  request.set_with_replacement(choices.with_replacement);
  if (!choices.seed.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t seed,
                               ParseInteger(choices.seed));
    request.set_seed(seed);
  }
  if (choices.min_mass != 0) request.set_min_mass(choices.min_mass);
  for (const std::string& flag : choices.crowding_limits) {
    ATTENDANT_ASSIGN_OR_RETURN(*request.add_crowding_limits(),
                               ParseCrowdingLimit(flag));
  }
  if (choices.recall != 0) request.set_recall(choices.recall);
  if (choices.probe_count != 0) request.set_probe_count(choices.probe_count);
  if (choices.mass_precision != 0) {
    request.set_mass_precision(choices.mass_precision);
  }
  request.set_mass_method(FromFlag<v1::MassMethod>(choices.mass_method));
  request.set_activation_kind(FromFlag<v1::ActivationKind>(choices.activation));
  request.set_score_kind(FromFlag<v1::ScoreKind>(choices.score));
  if (!choices.model.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(*request.mutable_model(),
                               ParseModelReference(choices.model));
  }
  for (const std::string& flag : choices.heads) {
    ATTENDANT_ASSIGN_OR_RETURN(*request.add_heads(), ParseHead(flag));
  }
  for (const std::string& flag : choices.biases) {
    ATTENDANT_ASSIGN_OR_RETURN(*request.add_biases(), ParseBias(flag));
  }
  for (const std::string& flag : choices.decays) {
    ATTENDANT_ASSIGN_OR_RETURN(*request.add_biases(), ParseDecay(flag));
  }
  if (!choices.time.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(*request.mutable_time(),
                               ParseTimeFlag(choices.time));
  }
  return absl::OkStatus();
}

}  // namespace attendant
