// attendant fit temperature
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/api/pages.h"
#include "client/api/wire_vector.h"
#include "client/commands/fits/commands.h"
#include "client/commands/fits/fit.h"
#include "client/commands/fits/model_directory.h"
#include "client/commands/shared/convert.h"
#include "client/commands/shared/flags.h"
#include "client/files/jsonl.h"
#include "client/format/progress.h"
#include "client/format/text.h"
#include "core/attention/softmax/score.h"
#include "core/base/status.h"
#include "core/encode/temperature.h"

namespace attendant {
namespace {

// The most bytes of keys on a page of items, well within a message.
constexpr std::int64_t kPageBytes = 8 << 20;

struct TemperatureFlags {
  std::string catalog;
  std::string pairs;
  std::string field;
  bool dry_run = false;
};

// All keys of a field, and the row of each item.
struct FieldKeys {
  std::int64_t dim = 0;
  std::vector<float> data;  // [rows, dim]
  absl::flat_hash_map<std::string, std::int32_t> row_of;
};

// Reads all keys of a field. Internal if a key has another dimension.
absl::StatusOr<FieldKeys> Download(Client& client, const v1::Catalog& catalog,
                                   const v1::KeyField& field) {
  std::int64_t item_bytes = 0;
  for (const v1::KeyField& key_field : catalog.schema().key_fields()) {
    item_bytes += key_field.dimension() * std::int64_t{sizeof(float)};
  }
  v1::ListItemsRequest request;
  request.set_catalog(catalog.name());
  request.set_page_size(static_cast<std::int32_t>(
      std::clamp<std::int64_t>(kPageBytes / item_bytes, 1, 1000)));
  request.mutable_read_mask()->add_paths("keys");
  FieldKeys keys;
  keys.dim = field.dimension();
  std::int64_t item_count = 0;
  Progress progress(stderr, "Reading keys", catalog.item_count());
  const auto take = [&](const v1::ListItemsResponse& page) -> absl::Status {
    for (const v1::Item& item : page.items()) {
      const auto key = item.keys().find(field.name());
      if (key == item.keys().end()) continue;
      ATTENDANT_ASSIGN_OR_RETURN(const auto components,
                                 FromVector(key->second));
      if (static_cast<std::int64_t>(components.size()) != keys.dim) {
        return absl::InternalError("the server sent a key of another length");
      }
      keys.row_of.emplace(item.id(),
                          static_cast<std::int32_t>(keys.row_of.size()));
      keys.data.insert(keys.data.end(), components.begin(), components.end());
    }
    item_count += page.items_size();
    progress.Update(item_count);
    return absl::OkStatus();
  };
  ATTENDANT_RETURN_IF_ERROR(
      ForEachPage(client, &Client::ListItems, request, take));
  return keys;
}

// A line of a file of choices. Its ids need not be in the catalog. Has either
// examples or a vector.
struct Pair {
  std::string item;
  std::vector<std::string> examples;
  std::vector<float> vector;  // [dim]
};

absl::StatusOr<std::string> ReadId(const nlohmann::json& id,
                                   absl::string_view member) {
  if (id.is_string()) return id.get<std::string>();
  return absl::InvalidArgumentError(absl::StrCat(member, ": want an id"));
}

absl::StatusOr<Pair> ReadPair(const nlohmann::json& object, std::int64_t dim) {
  Pair pair;
  const nlohmann::json none;
  ATTENDANT_ASSIGN_OR_RETURN(pair.item,
                             ReadId(object.value("item", none), "item"));
  const nlohmann::json examples = object.value("examples", none);
  const nlohmann::json vector = object.value("vector", none);
  if (examples.is_array() == vector.is_array()) {
    return absl::InvalidArgumentError(
        "want either examples or vector, as a list");
  }
  if (examples.is_array()) {
    if (examples.empty()) {
      return absl::InvalidArgumentError("examples: want at least one id");
    }
    for (const nlohmann::json& example : examples) {
      ATTENDANT_ASSIGN_OR_RETURN(std::string id, ReadId(example, "examples"));
      if (id == pair.item) {
        return absl::InvalidArgumentError("item is among its own examples");
      }
      pair.examples.push_back(std::move(id));
    }
    return pair;
  }
  for (const nlohmann::json& component : vector) {
    const double number =
        component.is_number() ? component.get<double>() : std::nan("");
    if (!std::isfinite(static_cast<float>(number))) {
      return absl::InvalidArgumentError("vector: want finite numbers");
    }
    pair.vector.push_back(static_cast<float>(number));
  }
  if (static_cast<std::int64_t>(pair.vector.size()) != dim) {
    return absl::InvalidArgumentError(absl::StrCat(
        "numbers of vector: got ", pair.vector.size(), ", want ", dim));
  }
  return pair;
}

constexpr char kPairForms[] =
    "{\"examples\": [\"ID\", ...], \"item\": \"ID\"} or {\"vector\": [...], "
    "\"item\": \"ID\"}";

// Reads a file of choices. InvalidArgument, with the line, if one is malformed.
absl::StatusOr<std::vector<Pair>> ReadPairs(const std::string& file,
                                            std::int64_t dim) {
  std::vector<Pair> pairs;
  const absl::Status status = ReadJsonLines(
      file,
      [&](std::int64_t /*line*/, const nlohmann::json& object) -> absl::Status {
        ATTENDANT_ASSIGN_OR_RETURN(pairs.emplace_back(), ReadPair(object, dim));
        return absl::OkStatus();
      });
  if (absl::IsInvalidArgument(status)) {
    return WithHint(status, absl::StrCat("a line is as ", kPairForms));
  }
  ATTENDANT_RETURN_IF_ERROR(status);
  return pairs;
}

// The pairs and examples left out because the field has no key of their items:
// items are deleted while files of choices are kept.
struct LeftOut {
  std::int64_t pair_count = 0;
  std::int64_t example_count = 0;  // of pairs that are used
  std::string first;               // the id that was missing first
};

// Returns the row of the item's key; nothing if there is none, and notes the id
// in `left_out`.
std::optional<std::int32_t> RowOf(const FieldKeys& keys, const std::string& id,
                                  LeftOut& left_out) {
  const auto row = keys.row_of.find(id);
  if (row != keys.row_of.end()) return row->second;
  if (left_out.first.empty()) left_out.first = id;
  return std::nullopt;
}

// Returns the pair as a choice; nothing if its item or all of its examples are
// missing.
std::optional<Choice> ChoiceOf(const Pair& pair, const FieldKeys& keys,
                               LeftOut& left_out) {
  const auto target = RowOf(keys, pair.item, left_out);
  Choice choice;
  choice.target = target.value_or(-1);
  choice.query = pair.vector;
  std::int64_t gone_count = 0;
  for (const std::string& id : pair.examples) {
    if (const auto row = RowOf(keys, id, left_out)) {
      choice.history.push_back(*row);
    } else {
      ++gone_count;
    }
  }
  if (!target || (choice.query.empty() && choice.history.empty())) {
    return std::nullopt;
  }
  left_out.example_count += gone_count;
  return choice;
}

// Returns the choices whose items have keys, and notes the others.
// InvalidArgument if all are left out.
absl::StatusOr<std::vector<Choice>> ChoicesOf(const std::string& file,
                                              const std::vector<Pair>& pairs,
                                              const FieldKeys& keys) {
  std::vector<Choice> choices;
  LeftOut left_out;
  for (const Pair& pair : pairs) {
    if (auto choice = ChoiceOf(pair, keys, left_out)) {
      choices.push_back(*std::move(choice));
    } else {
      ++left_out.pair_count;
    }
  }
  if (choices.empty() && left_out.pair_count > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": got ", CountOf(left_out.pair_count, "pair"),
        ", none of items with a key in this field; for example, there is no '",
        left_out.first, "'"));
  }
  if (!left_out.first.empty()) {
    NoteStep(absl::StrCat("left out ", CountOf(left_out.pair_count, "pair"),
                          ", and ", CountOf(left_out.example_count, "example"),
                          " of other pairs: the field has no key of '",
                          Printable(left_out.first), "', for example"));
  }
  return choices;
}

// Returns the field of this name, or the first if the name is empty.
absl::StatusOr<v1::KeyField> ChooseField(const v1::Catalog& catalog,
                                         const std::string& name) {
  for (const v1::KeyField& field : catalog.schema().key_fields()) {
    if (name.empty() || field.name() == name) return field;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--field: ", NoSuchField(catalog.schema(), name)));
}

// Returns what a fit sets, and the command that takes it back.
std::string ReportChange(const TemperatureFlags& flags,
                         const v1::KeyField& before, const v1::KeyField& after,
                         const AttentionDefaults& defaults) {
  const bool sets_combine = before.combine_kind() != after.combine_kind();
  std::string text = absl::StrCat(
      flags.dry_run ? "Would set" : "Set", " temperature of field ",
      before.name(), " of ", flags.catalog, ": ",
      FormatNumber(before.temperature()), " -> ",
      FormatNumber(after.temperature()),
      sets_combine ? absl::StrCat(", combine ", FlagOf(before.combine_kind()),
                                  " -> ", FlagOf(after.combine_kind()))
                   : "",
      ".\nChose ", DescribeDefaults(defaults), ".\n");
  if (flags.dry_run) return text;
  // With all digits, so that the old temperature comes back exactly.
  return absl::StrCat(
      text, "Undo: attendant catalog update ", flags.catalog, " ",
      before.name(), " --temperature ",
      nlohmann::json(before.temperature()).dump(),
      sets_combine ? absl::StrCat(" --combine ", FlagOf(before.combine_kind()))
                   : "",
      "\n");
}

absl::Status FitTemperatureCommand(const TemperatureFlags& flags,
                                   const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  v1::GetCatalogRequest get;
  get.set_name(flags.catalog);
  ATTENDANT_ASSIGN_OR_RETURN(const auto found, client->GetCatalog(get));
  ATTENDANT_ASSIGN_OR_RETURN(const v1::KeyField field,
                             ChooseField(found.catalog(), flags.field));
  if (field.has_model() || field.score_kind() == v1::SCORE_KIND_BILINEAR ||
      field.score_kind() == v1::SCORE_KIND_ADDITIVE) {
    return absl::InvalidArgumentError(absl::StrCat(
        "field ", field.name(),
        ": got a field whose logits come from a model, want one whose logits "
        "are products of vectors: only their temperature can be fitted"));
  }
  // Checked before the keys are read, which may take long.
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<Pair> pairs,
                             ReadPairs(flags.pairs, field.dimension()));
  ATTENDANT_ASSIGN_OR_RETURN(const FieldKeys keys,
                             Download(*client, found.catalog(), field));
  NoteStep(absl::StrCat(
      "read ", CountOf(static_cast<std::int64_t>(keys.row_of.size()), "key"),
      " of field ", field.name()));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<Choice> choices,
                             ChoicesOf(flags.pairs, pairs, keys));
  const auto choice_count = static_cast<std::int64_t>(choices.size());
  if (!flags.dry_run && choice_count < kMinChoices) {
    return absl::InvalidArgumentError(absl::StrCat(
        flags.pairs, ": got ", CountOf(choice_count, "choice"),
        ", want at least ", kMinChoices,
        " to set a temperature by (--dry-run shows the one that these would "
        "set, and `attendant catalog update` sets it)"));
  }
  const bool has_examples = std::ranges::any_of(
      choices, [](const Choice& choice) { return !choice.history.empty(); });
  NoteStep(absl::StrCat("read ", CountOf(choice_count, "pair"), "; searching"));
  DefaultsSearch search;
  // The schema's score kind can't change.
  search.score_kind =
      ScoreKindFromName(absl::AsciiStrToUpper(FlagOf(field.score_kind())));
  if (!has_examples) {
    search.combine_kind = CombineKindFromName(
        absl::AsciiStrToUpper(FlagOf(field.combine_kind())));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      const AttentionDefaults defaults,
      FitDefaults({.data = keys.data.data(),
                   .row_count = static_cast<std::int64_t>(keys.row_of.size()),
                   .dim = keys.dim},
                  choices, search));
  v1::UpdateCatalogRequest update;
  update.set_name(flags.catalog);
  v1::KeyField& fitted = *update.add_key_fields();
  fitted = field;
  SetDefaults(defaults, fitted);
  update.mutable_update_mask()->add_paths("temperature");
  // Choices by vectors say nothing about how examples combine.
  if (has_examples) update.mutable_update_mask()->add_paths("combine_kind");
  if (!flags.dry_run) {
    ATTENDANT_RETURN_IF_ERROR(client->UpdateCatalog(update).status());
  }
  if (context.json) {
    nlohmann::json json = DefaultsJson(defaults);
    json["catalog"] = flags.catalog;
    json["key_field"] = field.name();
    json["previous_temperature"] = field.temperature();
    json["previous_combine_kind"] = FlagOf(field.combine_kind());
    json["dry_run"] = flags.dry_run;
    PrintCamelCase(json);
    return absl::OkStatus();
  }
  Print(ReportChange(flags, field, fitted, defaults));
  NoteSmallGain(defaults);
  return absl::OkStatus();
}

}  // namespace

void AddFitTemperatureCommand(CLI::App& fit, Context& context) {
  auto flags = std::make_shared<TemperatureFlags>();
  CLI::App* temperature = fit.add_subcommand(
      "temperature",
      "Learn a catalog's temperature and combine kind from known choices, and "
      "set them");
  // As a word like the catalogs of other commands, or as a flag like what else
  // a fit takes.
  temperature
      ->add_option("CATALOG,--catalog", flags->catalog,
                   "The catalog, with or without --catalog")
      ->required();
  temperature
      ->add_option(
          "--pairs", flags->pairs,
          absl::StrCat("Choices, one JSON object per line: ", kPairForms))
      ->type_name("FILE")
      ->required();
  temperature
      ->add_option("--field", flags->field,
                   "The key field. Default: the catalog's first")
      ->type_name("FIELD");
  temperature->add_flag("--dry-run", flags->dry_run,
                        "Print what would be set, and set nothing");
  temperature->footer(
      "Example:\n"
      "  attendant fit temperature photos --pairs clicks.jsonl\n\n"
      "Queries that give no temperature use the new one at once. The old one "
      "is\n"
      "printed, with the command that brings it back. Fewer than 20 choices "
      "set\n"
      "no temperature.");
  SetVerb(*temperature, context, flags, &FitTemperatureCommand);
}

}  // namespace attendant
