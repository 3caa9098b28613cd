// attendant fit text
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/commands/fits/commands.h"
#include "client/commands/fits/fit.h"
#include "client/commands/shared/flags.h"
#include "client/files/csv.h"
#include "client/files/npy.h"
#include "client/files/output.h"
#include "core/base/ids.h"
#include "core/base/status.h"
#include "core/encode/text_lsi.h"
#include "core/storage/records/item.h"

namespace attendant {
namespace {

struct TextFlags {
  std::string items;
  std::string out;
  std::vector<std::string> columns;
  std::string id_column = "item_id";
  std::int64_t dim = 128;
  std::string field = "text";
};

struct ItemTexts {
  std::vector<std::string> ids;
  std::vector<TextColumn> columns;
};

// Returns the attribute's name for a column's name: in lower case, with '_' for
// characters that attribute names can't have.
std::string AttributeName(const std::string& column) {
  std::string name;
  for (const char c : absl::AsciiStrToLower(column)) {
    name.push_back(absl::ascii_isalnum(c) ? c : '_');
  }
  if (name.empty() || !absl::ascii_isalpha(name[0])) name = "a_" + name;
  return name;
}

// Returns the names of the attributes that the columns become. InvalidArgument
// if a catalog could not declare one of them.
absl::StatusOr<std::vector<std::string>> AttributeNames(
    const std::vector<std::string>& columns) {
  std::vector<std::string> names;
  for (const std::string& flag : columns) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto column, ParseWeightedName(flag));
    const std::string subject = absl::StrCat("--columns ", column.first);
    std::string name = AttributeName(column.first);
    ATTENDANT_RETURN_IF_ERROR(
        ValidateFieldName(name, absl::StrCat(subject, ": its attribute")));
    if (name == "id" || std::ranges::find(names, name) != names.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(subject, ": the attribute's name ", name, " is taken"));
    }
    names.push_back(std::move(name));
  }
  return names;
}

absl::StatusOr<ItemTexts> ReadTexts(const TextFlags& flags) {
  ItemTexts texts;
  std::vector<std::string> names = {flags.id_column};
  for (const std::string& flag : flags.columns) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto column, ParseWeightedName(flag));
    names.push_back(column.first);
    TextColumn text;
    text.name = column.first;
    text.weight = column.second;
    texts.columns.push_back(std::move(text));
  }
  absl::flat_hash_map<std::string, std::int64_t> row_of;
  const auto visit = [&](const CsvRow& row) -> absl::Status {
    const std::string& id = row.fields[0];
    ATTENDANT_RETURN_IF_ERROR(ValidateItemId(id, flags.id_column));
    const auto [first, is_new] = row_of.try_emplace(id, row.number);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat(flags.id_column, ": id '", id, "' is not unique: row ",
                       first->second, " has it too"));
    }
    texts.ids.push_back(id);
    for (std::size_t i = 0; i < texts.columns.size(); ++i) {
      const std::string& text = row.fields[i + 1];
      if (!IsValidUtf8(text)) {
        return InvalidField(texts.columns[i].name, "malformed bytes", "UTF-8");
      }
      texts.columns[i].texts.push_back(text);
    }
    return absl::OkStatus();
  };
  const absl::Status status = ReadCsv(flags.items, names, visit);
  if (absl::StrContains(status.message(),
                        absl::StrCat(": no column '", flags.id_column, "';"))) {
    return absl::Status(
        status.code(),
        absl::StrCat(status.message(), " (--id-column names another)"));
  }
  ATTENDANT_RETURN_IF_ERROR(status);
  return texts;
}

// Returns the attributes of all items, one JSON object per line.
std::string AttributeLines(const ItemTexts& texts,
                           const std::vector<std::string>& names) {
  std::string lines;
  for (std::size_t i = 0; i < texts.ids.size(); ++i) {
    nlohmann::ordered_json object;
    object["id"] = texts.ids[i];
    for (std::size_t c = 0; c < names.size(); ++c) {
      object[names[c]] = texts.columns[c].texts[i];
    }
    absl::StrAppend(&lines, object.dump(), "\n");
  }
  return lines;
}

absl::Status FitTextCommand(const TextFlags& flags, const Context& context) {
  ATTENDANT_RETURN_IF_ERROR(CheckWritableDirectory(flags.out));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             AttributeNames(flags.columns));
  NoteStep(absl::StrCat("reading ", flags.items));
  ATTENDANT_ASSIGN_OR_RETURN(const ItemTexts texts, ReadTexts(flags));
  const auto item_count = static_cast<std::int64_t>(texts.ids.size());
  NoteStep(absl::StrCat("read ", CountOf(item_count, "item")));
  Model model;
  for (const std::string& name : names) {
    v1::AttributeField& attribute = model.attributes.emplace_back();
    attribute.set_name(name);
    attribute.set_type(v1::ATTRIBUTE_TYPE_STRING);
  }
  TextLsiOptions options;
  options.dim = flags.dim;
  options.progress = &NoteStep;
  ATTENDANT_ASSIGN_OR_RETURN(const TextLsiModel lsi,
                             FitTextLsi(texts.columns, options));
  const std::int64_t dim = lsi.encoder.parts().dim;
  const std::string encoder = lsi.encoder.Serialize();
  if (encoder.size() > Client::kMaxMessageBytes) {
    Note(absl::StrCat(
        "The encoder takes ",
        FormatBytes(static_cast<std::int64_t>(encoder.size())),
        ", more than a server takes in a request unless its "
        "--max-message-bytes is larger. A smaller --dim makes it smaller."));
  }

  // An item without a known term has a zero vector, which is no key.
  std::vector<std::string> ids;
  std::vector<float> keys;
  for (std::int64_t i = 0; i < item_count; ++i) {
    const auto begin = lsi.keys.begin() + i * dim;
    if (std::all_of(begin, begin + dim, [](float c) { return c == 0; })) {
      continue;
    }
    ids.push_back(texts.ids[i]);
    keys.insert(keys.end(), begin, begin + dim);
  }
  const auto key_count = static_cast<std::int64_t>(ids.size());
  if (key_count < item_count) {
    Note(absl::StrCat(CountOf(item_count - key_count, "item"),
                      " without a term that was kept: no key in ", flags.field,
                      "; an import refuses an item unless another --from gives "
                      "it a key"));
  }
  model.key_field.set_name(flags.field);
  model.key_field.set_dimension(static_cast<std::int32_t>(dim));
  SetDefaults(lsi.defaults, model.key_field);
  model.has_encoder = true;
  model.fit = DefaultsJson(lsi.defaults);
  model.fit["kind"] = "text";
  model.fit["columns"] = flags.columns;
  model.fit["item_count"] = item_count;
  model.fit["key_count"] = key_count;
  model.fit["term_count"] = lsi.encoder.parts().terms.size();
  ATTENDANT_RETURN_IF_ERROR(WriteDirectory(
      flags.out, {{kIdsFile, Lines(ids)},
                  {kKeysFile, NpyBytes(keys, dim)},
                  {kSingularValuesFile, NpyBytes(lsi.singular_values)},
                  {kEncoderFile, encoder},
                  {kAttributesFile, AttributeLines(texts, names)},
                  {kModelFile, ModelJson(model)}}));
  ReportFit(flags.out, key_count, flags.dim, model, lsi.defaults, context);
  return absl::OkStatus();
}

}  // namespace

void AddFitTextCommand(CLI::App& fit, Context& context) {
  auto flags = std::make_shared<TextFlags>();
  CLI::App* text = fit.add_subcommand(
      "text", "Item keys and a text encoder from item texts");
  text->add_option("ITEMS.csv", flags->items,
                   "CSV with a header and one item per row; may be gzipped")
      ->required();
  text->add_option("--columns", flags->columns,
                   "Text columns as NAME or NAME:WEIGHT, separated by commas")
      ->type_name("NAME")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->required()
      ->check(Accepts(&ParseWeightedName));
  text->add_option("--out", flags->out, "The directory to write")
      ->type_name("DIR")
      ->required();
  text->add_option("--id-column", flags->id_column, "The column of item ids")
      ->type_name("NAME")
      ->capture_default_str();
  text->add_option("--dim", flags->dim, "Dimensions of a key")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  text->add_option("--field", flags->field, "The key field's name")
      ->type_name("NAME")
      ->check(Accepts(&ParseFieldName))
      ->capture_default_str();
  text->footer(
      "Example:\n"
      "  attendant fit text items.csv --columns name:2,description "
      "--out fit/text\n"
      "  attendant catalog create shop --from fit/text\n"
      "  attendant items import shop --from fit/text\n"
      "  attendant attend shop --text 'alarm clock' --show name\n\n"
      "The texts become string attributes of the items.");
  SetVerb(*text, context, flags, &FitTextCommand);
}

}  // namespace attendant
