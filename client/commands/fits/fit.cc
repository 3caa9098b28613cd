#include "client/commands/fits/fit.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/commands/fits/commands.h"
#include "client/files/npy.h"
#include "client/format/text.h"

namespace attendant {
namespace {

// A smaller gain over a uniform guess, in nats, is worth a word: e^-0.2 = 0.82.
constexpr double kSmallGain = 0.2;

// Returns the server's spelling of a kind or type that files have in lower
// case, and any other value unchanged.
std::string WireName(absl::string_view member, const std::string& value) {
  absl::string_view prefix;
  if (absl::EndsWith(member, "score_kind")) prefix = "SCORE_KIND_";
  if (absl::EndsWith(member, "combine_kind")) prefix = "COMBINE_KIND_";
  if (member == "type") prefix = "ATTRIBUTE_TYPE_";
  return prefix.empty() ? value
                        : absl::StrCat(prefix, absl::AsciiStrToUpper(value));
}

nlohmann::ordered_json CamelCase(const nlohmann::ordered_json& json) {
  if (!json.is_structured()) return json;
  nlohmann::ordered_json result(json.type());
  for (const auto& [key, value] : json.items()) {
    if (json.is_array()) {
      result.push_back(CamelCase(value));
      continue;
    }
    std::string name;
    for (std::size_t i = 0; i < key.size(); ++i) {
      if (key[i] == '_') continue;
      name += i > 0 && key[i - 1] == '_' ? absl::ascii_toupper(key[i]) : key[i];
    }
    result[name] = CamelCase(value);
    if (value.is_string()) {
      result[name] = WireName(key, value.get<std::string>());
    }
  }
  return result;
}

}  // namespace

void NoteStep(absl::string_view step) { Note(absl::StrCat("  ", step)); }

std::string DescribeDefaults(const AttentionDefaults& defaults) {
  std::string text = absl::StrCat(
      "score ", absl::AsciiStrToLower(Name(defaults.score_kind)), ", combine ",
      absl::AsciiStrToLower(Name(defaults.combine_kind)), ", temperature ",
      FormatNumber(defaults.temperature));
  if (!defaults.negative_log_likelihood.has_value()) return text;
  // A likelihood in nats says little; its exponential is a number of items.
  absl::StrAppend(
      &text, "; on ", defaults.choice_count < kMinChoices ? "only " : "",
      CountOf(defaults.choice_count, "known choice"),
      ", as good as a guess among ",
      FormatNumber(std::exp(*defaults.negative_log_likelihood)), " items");
  if (defaults.uniform_negative_log_likelihood.has_value()) {
    absl::StrAppend(&text, " rather than all ",
                    FormatCount(std::llround(
                        std::exp(*defaults.uniform_negative_log_likelihood))));
  }
  return text;
}

void NoteSmallGain(const AttentionDefaults& defaults) {
  if (!defaults.negative_log_likelihood.has_value() ||
      !defaults.uniform_negative_log_likelihood.has_value() ||
      *defaults.uniform_negative_log_likelihood -
              *defaults.negative_log_likelihood >=
          kSmallGain) {
    return;
  }
  Note(
      "That is hardly better than a guess among all items: these keys say "
      "little about which item is chosen.");
}

nlohmann::json DefaultsJson(const AttentionDefaults& defaults) {
  nlohmann::json json;
  json["score_kind"] = absl::AsciiStrToLower(Name(defaults.score_kind));
  json["combine_kind"] = absl::AsciiStrToLower(Name(defaults.combine_kind));
  json["temperature"] = defaults.temperature;
  json["choice_count"] = defaults.choice_count;
  if (defaults.negative_log_likelihood.has_value()) {
    json["negative_log_likelihood"] = *defaults.negative_log_likelihood;
  }
  if (defaults.uniform_negative_log_likelihood.has_value()) {
    json["uniform_negative_log_likelihood"] =
        *defaults.uniform_negative_log_likelihood;
  }
  return json;
}

void PrintCamelCase(const nlohmann::ordered_json& json) {
  Print(CamelCase(json).dump(1, ' ', false,
                             nlohmann::json::error_handler_t::replace) +
        "\n");
}

std::string Lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\n");
  return text;
}

void ReportFit(const std::string& directory, std::int64_t item_count,
               std::int64_t wanted_dim, const Model& model,
               const AttentionDefaults& defaults, const Context& context) {
  if (context.json) {
    nlohmann::ordered_json json;
    json["directory"] = directory;
    json["model"] = nlohmann::ordered_json::parse(ModelJson(model), nullptr,
                                                  /*allow_exceptions=*/false);
    PrintCamelCase(json);
    return;
  }
  const std::int64_t dim = model.key_field.dimension();
  Print(absl::StrCat(
      "Chose ", DescribeDefaults(defaults), ".\nWrote ",
      CountOf(item_count, "key"), " of ", CountOf(dim, "dimension"),
      " for field ", model.key_field.name(), " to ", directory, ".\n",
      dim < wanted_dim ? absl::StrCat("The data have only ", dim,
                                      " independent dimensions, so --dim ",
                                      wanted_dim, " gives no more.\n")
                       : ""));
  NoteSmallGain(defaults);
}

void AddFitCommands(CLI::App& app, Context& context) {
  CLI::App* fit =
      app.add_subcommand("fit", "Learn keys, text encoders and temperatures");
  fit->require_subcommand(1);
  fit->footer(
      "Examples:\n"
      "  attendant fit lsi events.csv.gz --out fit/events\n"
      "  attendant fit temperature --catalog photos --pairs clicks.jsonl");
  AddFitLsiCommand(*fit, context);
  AddFitTextCommand(*fit, context);
  AddFitTemperatureCommand(*fit, context);
}

}  // namespace attendant
