#include "client/commands/items/import_rows.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/api/wire_vector.h"
#include "client/commands/fits/model_directory.h"
#include "client/commands/shared/command.h"
#include "client/commands/shared/convert.h"
#include "client/commands/shared/flags.h"
#include "client/files/csv.h"
#include "client/files/ids.h"
#include "client/files/input.h"
#include "client/files/json.h"
#include "client/files/jsonl.h"
#include "core/base/ids.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Returns the dimension of keys of `field`, or of values if `field` is empty;
// nothing if there is no such field.
std::optional<std::int64_t> DimensionOf(const v1::CatalogSchema& schema,
                                        const std::string& field) {
  if (field.empty()) return schema.value_dimension();
  for (const v1::KeyField& key_field : schema.key_fields()) {
    if (key_field.name() == field) return key_field.dimension();
  }
  return std::nullopt;
}

constexpr absl::string_view kOpaqueValue = "opaque_value";
// Doubles below it hold every integer.
constexpr double kMaxExactDouble = 9007199254740992;

// Returns the position of the column of ids, or columns.size() if there is
// none.
std::size_t FindIdColumn(std::span<const std::string> columns) {
  for (const char* name : {"id", "item_id"}) {
    const auto found = std::ranges::find(columns, name);
    if (found != columns.end()) {
      return static_cast<std::size_t>(found - columns.begin());
    }
  }
  return columns.size();
}

bool IsSelected(const std::string& name,
                const std::vector<std::string>& columns) {
  return columns.empty() || absl::c_linear_search(columns, name);
}

// Returns "it declares: name (string), price (double)".
std::string DeclaredAttributes(const v1::CatalogSchema& schema) {
  std::vector<std::string> declared;
  for (const v1::AttributeField& attribute : schema.attributes()) {
    declared.push_back(
        absl::StrCat(attribute.name(), " (", FlagOf(attribute.type()), ")"));
  }
  return absl::StrCat("it declares ", declared.empty()
                                          ? "none"
                                          : absl::StrJoin(declared, ", "));
}

// Checks the header of a CSV file of attributes, of which `columns` are read.
// Names all columns that the catalog does not declare.
absl::Status CheckHeader(const std::string& path,
                         std::span<const std::string> header,
                         const std::vector<std::string>& columns,
                         const v1::CatalogSchema& schema) {
  const std::size_t id_column = FindIdColumn(header);
  if (id_column == header.size()) {
    return FileError(
        path, absl::StrCat("got the columns ", absl::StrJoin(header, ", "),
                           ", want one named id or item_id among them"));
  }
  for (const std::string& column : columns) {
    if (absl::c_linear_search(header, column)) continue;
    return FileError(
        path, absl::StrCat("--columns: no column '", column,
                           "'; the columns are ", absl::StrJoin(header, ", ")));
  }
  std::vector<std::string> known;
  std::vector<std::string> unknown;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (i == id_column || !IsSelected(header[i], columns)) continue;
    const bool is_known = header[i] == kOpaqueValue ||
                          FindAttribute(schema, header[i]) != nullptr;
    (is_known ? known : unknown).push_back(header[i]);
  }
  if (unknown.empty()) return absl::OkStatus();
  return FileError(
      path,
      absl::StrCat(
          "the catalog declares no attribute ", absl::StrJoin(unknown, ", "),
          "; ", DeclaredAttributes(schema),
          ". `attendant catalog update CATALOG --attribute NAME:TYPE` declares "
          "another",
          known.empty() ? ""
                        : absl::StrCat("; to leave the others out: --columns ",
                                       absl::StrJoin(known, ","))));
}

// Quotes a text for a shell, unless it is plain.
std::string ShellWord(const std::string& text) {
  const bool is_plain = absl::c_all_of(text, [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("_-./=:,+", c);
  });
  if (is_plain && !text.empty()) return text;
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace

nlohmann::json ValueOfText(const std::string& text, v1::AttributeType type) {
  if (type == v1::ATTRIBUTE_TYPE_BOOL) {
    const std::string lower = absl::AsciiStrToLower(text);
    if (lower == "true" || lower == "false") return lower == "true";
  }
  std::int64_t integer = 0;
  if (type == v1::ATTRIBUTE_TYPE_INT64 && absl::SimpleAtoi(text, &integer)) {
    return integer;
  }
  double number = 0;
  if (absl::SimpleAtod(text, &number) && std::isfinite(number)) {
    if (type == v1::ATTRIBUTE_TYPE_DOUBLE) return number;
    // Pandas writes the integers of a column with gaps as 30.0.
    if (type == v1::ATTRIBUTE_TYPE_INT64 && number == std::trunc(number) &&
        std::abs(number) < kMaxExactDouble) {
      return static_cast<std::int64_t>(number);
    }
  }
  if (type == v1::ATTRIBUTE_TYPE_STRING_LIST) {
    // In an object, to be parsed with a bounded depth.
    const auto object =
        ParseJsonObjectWithUniqueNames(absl::StrCat("{\"list\":", text, "}"));
    if (object.ok() && object->size() == 1) return object->at("list");
  }
  return text;
}

std::string ShellFlags(const ImportInputs& inputs) {
  std::string text;
  const auto add = [&text](absl::string_view flag, const std::string& value) {
    if (!value.empty())
      absl::StrAppend(&text, " ", flag, " ", ShellWord(value));
  };
  for (const std::string& directory : inputs.directories) {
    add("--from", directory);
  }
  add("--ids", inputs.ids);
  for (const std::string& keys : inputs.keys) add("--keys", keys);
  add("--values", inputs.values);
  add("--attributes", inputs.attributes);
  add("--columns", absl::StrJoin(inputs.columns, ","));
  return text;
}

InputOptions AddInputFlags(CLI::App& command, ImportInputs& inputs) {
  InputOptions options{};
  options.from =
      AddRepeated(command, "--from", inputs.directories,
                  "A directory that `attendant fit` wrote; several are joined "
                  "by id")
          ->type_name("DIR");
  options.ids =
      command
          .add_option(
              "--ids", inputs.ids,
              "The ids of the rows of --keys and --values, one per line")
          ->type_name("FILE");
  options.keys = AddRepeated(command, "--keys", inputs.keys,
                             "The keys of a field, as FIELD=FILE.npy, "
                             "FIELD=FILE.fvecs, or FIELD=FILE.txt or .csv "
                             "with one row of numbers per line")
                     ->type_name("FIELD=FILE")
                     ->check(Accepts(&ParseAssignment))
                     ->needs(options.ids);
  command
      .add_option("--values", inputs.values,
                  "The values, as FILE.npy, FILE.fvecs, FILE.txt or FILE.csv")
      ->type_name("FILE")
      ->needs(options.ids);
  options.attributes = command
                           .add_option("--attributes", inputs.attributes,
                                       "Attributes, as one JSON object per "
                                       "line: {\"id\": \"...\", \"price\": "
                                       "2.5, ...}; or as .csv with a column id "
                                       "and a column per attribute. Times as "
                                       "2011-12-09 or RFC 3339 text, "
                                       "\"opaque_value\" as base64, a list as "
                                       "[\"sale\", \"new\"], in CSV as "
                                       "\"[\"\"sale\"\", \"\"new\"\"]\"")
                           ->type_name("FILE");
  command
      .add_option("--columns", inputs.columns,
                  "Read only these attributes of --attributes, separated by "
                  "commas")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(options.attributes);
  return options;
}

absl::StatusOr<std::unique_ptr<ImportRows>> ImportRows::Open(
    const ImportInputs& inputs, const v1::CatalogSchema& schema) {
  std::unique_ptr<ImportRows> rows(new ImportRows(schema, inputs.partial));
  for (const std::string& directory : inputs.directories) {
    ATTENDANT_RETURN_IF_ERROR(rows->AddDirectory(directory));
  }
  if (!inputs.ids.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto ids, ReadIds(inputs.ids));
    for (const std::string& keys : inputs.keys) {
      ATTENDANT_ASSIGN_OR_RETURN(const auto assignment, ParseAssignment(keys));
      const auto& [field, path] = assignment;
      if (!DimensionOf(schema, field).has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--keys: ", NoSuchField(schema, field)));
      }
      ATTENDANT_RETURN_IF_ERROR(rows->AddSource(field, path, inputs.ids, ids));
    }
    if (!inputs.values.empty()) {
      ATTENDANT_RETURN_IF_ERROR(
          rows->AddSource("", inputs.values, inputs.ids, ids));
    }
  }
  if (!inputs.attributes.empty()) {
    rows->counts_without_attributes_ = true;
    ATTENDANT_RETURN_IF_ERROR(
        rows->AddAttributes(inputs.attributes, inputs.columns));
  }
  return rows;
}

absl::Status ImportRows::AddDirectory(const std::string& directory) {
  ATTENDANT_ASSIGN_OR_RETURN(const Model model, ReadModel(directory));
  const std::string ids_path = PathIn(directory, kIdsFile);
  ATTENDANT_ASSIGN_OR_RETURN(const auto ids, ReadIds(ids_path));
  ATTENDANT_RETURN_IF_ERROR(AddSource(
      model.key_field.name(), PathIn(directory, kKeysFile), ids_path, ids));
  const std::string attributes = PathIn(directory, kAttributesFile);
  // A model without attributes leaves the file of an earlier fit in place.
  if (model.attributes.empty() || access(attributes.c_str(), F_OK) != 0) {
    return absl::OkStatus();
  }
  return AddAttributes(attributes, {});
}

absl::Status ImportRows::AddSource(const std::string& field,
                                   const std::string& path,
                                   const std::string& ids_path,
                                   const std::vector<std::string>& ids) {
  const std::optional<std::int64_t> dim = DimensionOf(schema_, field);
  if (!dim.has_value()) {
    return FileError(path, NoSuchField(schema_, field));
  }
  const std::string what =
      field.empty() ? "values" : absl::StrCat("key field ", field);
  if (*dim == 0) return FileError(path, "the catalog's items have no values");
  for (const Source& source : sources_) {
    if (source.field != field) continue;
    return FileError(path, absl::StrCat("more than one file for ", what, ": ",
                                        source.file->path()));
  }
  Source source;
  source.field = field;
  ATTENDANT_ASSIGN_OR_RETURN(source.file, OpenVectorFile(path));
  if (source.file->dim() != *dim) {
    return FileError(
        path,
        absl::StrCat("got rows of ", CountOf(source.file->dim(), "component"),
                     ", want ", *dim,
                     " for the "
                     "catalog's ",
                     what));
  }
  if (source.file->row_count() != static_cast<std::int64_t>(ids.size())) {
    return FileError(
        path,
        absl::StrCat("got ", CountOf(source.file->row_count(), "row"),
                     ", want ", ids.size(), " as there are ids in ", ids_path));
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto row = static_cast<std::size_t>(RowOf(ids[i]));
    if (row >= source.file_rows.size()) source.file_rows.resize(row + 1, -1);
    source.file_rows[row] = static_cast<std::int64_t>(i);
  }
  sources_.push_back(std::move(source));
  return absl::OkStatus();
}

absl::Status ImportRows::AddAttributes(
    const std::string& path, const std::vector<std::string>& columns) {
  attributes_path_ = path;
  return IsCsv(path) ? AddAttributeCsv(path, columns)
                     : AddAttributeLines(path, columns);
}

absl::Status ImportRows::AddAttributeLines(
    const std::string& path, const std::vector<std::string>& columns) {
  absl::flat_hash_set<std::int64_t> seen;
  std::string id;  // of the line that is read, once known
  const auto visit = [&](std::int64_t /*line*/,
                         nlohmann::json object) -> absl::Status {
    const auto found = object.find("id");
    if (found == object.end() || !found->is_string()) {
      return absl::InvalidArgumentError(
          "every line needs the item's \"id\", a text");
    }
    id = found->get<std::string>();
    nlohmann::json attributes = nlohmann::json::object();
    for (auto& [name, value] : object.items()) {
      if (name != "id" && IsSelected(name, columns)) {
        attributes[name] = std::move(value);
      }
    }
    ATTENDANT_RETURN_IF_ERROR(AddAttributesOf(id, attributes, seen));
    id.clear();
    return absl::OkStatus();
  };
  if (partial_) return ReadJsonLines(path, visit);
  return ReadJsonLines(path, visit, [&](const absl::Status& error) {
    return Reject(std::exchange(id, ""), error);
  });
}

absl::Status ImportRows::AddAttributeCsv(
    const std::string& path, const std::vector<std::string>& columns) {
  absl::flat_hash_set<std::int64_t> seen;
  absl::Status header;
  const auto visit = [&](const CsvRow& row) -> absl::Status {
    header = CheckHeader(path, row.columns, columns, schema_);
    if (!header.ok()) return header;
    const std::size_t id_column = FindIdColumn(row.columns);
    nlohmann::json attributes = nlohmann::json::object();
    for (std::size_t i = 0; i < row.columns.size(); ++i) {
      // An empty field says that the item has no such attribute.
      if (i == id_column || row.fields[i].empty() ||
          !IsSelected(row.columns[i], columns)) {
        continue;
      }
      const v1::AttributeField* field = FindAttribute(schema_, row.columns[i]);
      attributes[row.columns[i]] =
          field == nullptr ? nlohmann::json(row.fields[i])
                           : ValueOfText(row.fields[i], field->type());
    }
    return AddAttributesOf(row.fields[id_column], attributes, seen);
  };
  const auto reject = [&](const CsvRow& row, const absl::Status& error) {
    header = CheckHeader(path, row.columns, columns, schema_);
    if (partial_ || !header.ok()) return error;
    // With a field too many or too few, the id is certain only if it is first.
    const bool is_whole = row.fields.size() == row.columns.size();
    const std::size_t id_column = FindIdColumn(row.columns);
    return is_whole || id_column == 0 ? Reject(row.fields[id_column], error)
                                      : error;
  };
  const absl::Status status = ReadWholeCsv(path, visit, reject);
  return header.ok() ? status : header;
}

absl::Status ImportRows::Reject(const std::string& id,
                                const absl::Status& error) {
  // Without its id, any item might lack what the row gives.
  if (!ValidateItemId(id, "id").ok()) return error;
  rejected_.try_emplace(RowOf(id), error);
  return absl::OkStatus();
}

absl::Status ImportRows::AddAttributesOf(
    const std::string& id, const nlohmann::json& given,
    absl::flat_hash_set<std::int64_t>& seen) {
  ATTENDANT_RETURN_IF_ERROR(ValidateItemId(id, "id"));
  const std::int64_t row = RowOf(id);
  if (!seen.insert(row).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("id '", id, "' is not unique"));
  }
  auto& attributes = *attributes_[row].mutable_attributes();
  for (const auto& [name, value] : given.items()) {
    if (value.is_null()) continue;
    const v1::AttributeField* field = FindAttribute(schema_, name);
    if (field == nullptr && name == kOpaqueValue) {
      absl::StatusOr<std::string> bytes = BytesFrom(value);
      if (!bytes.ok()) return PrefixField(bytes.status(), name + ": ");
      v1::Item& item = attributes_[row];
      if (!item.opaque_value().empty() && item.opaque_value() != *bytes) {
        return absl::InvalidArgumentError(absl::StrCat(
            name, ": another file gives '", id, "' another value"));
      }
      item.set_opaque_value(*std::move(bytes));
      continue;
    }
    if (field == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": the catalog declares no such attribute; ",
                       DeclaredAttributes(schema_)));
    }
    const auto attribute = ToAttribute(value, field->type());
    if (!attribute.ok()) return PrefixField(attribute.status(), name + ": ");
    const auto before = attributes.find(name);
    if (before != attributes.end() &&
        before->second.SerializeAsString() != attribute->SerializeAsString()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": another file gives '", id, "' another value"));
    }
    attributes[name] = *attribute;
  }
  return absl::OkStatus();
}

std::int64_t ImportRows::RowOf(const std::string& id) {
  const auto [entry, is_new] = row_of_.try_emplace(id, row_count());
  if (is_new) ids_.push_back(id);
  return entry->second;
}

absl::StatusOr<v1::Item> ImportRows::ReadItem(std::int64_t row) {
  if (const auto rejected = rejected_.find(row); rejected != rejected_.end()) {
    return rejected->second;
  }
  v1::Item item;
  item.set_id(id(row));
  for (Source& source : sources_) {
    const auto position = static_cast<std::size_t>(row);
    if (position >= source.file_rows.size()) continue;
    const std::int64_t file_row = source.file_rows[position];
    if (file_row < 0) continue;
    components_.resize(static_cast<std::size_t>(source.file->dim()));
    ATTENDANT_RETURN_IF_ERROR(source.file->ReadRow(file_row, components_));
    (source.field.empty() ? *item.mutable_value()
                          : (*item.mutable_keys())[source.field]) =
        ToVector(components_);
  }
  if (item.keys().empty() && !partial_) {
    return FileError(attributes_path_.empty() ? "the files" : attributes_path_,
                     "no file gives this id a key, and an item needs one");
  }
  const auto attributes = attributes_.find(row);
  if (attributes != attributes_.end()) {
    *item.mutable_attributes() = attributes->second.attributes();
    item.set_opaque_value(attributes->second.opaque_value());
  }
  if (counts_without_attributes_ && item.attributes().empty() &&
      item.opaque_value().empty()) {
    ++without_attributes_count_;
  }
  return item;
}

absl::StatusOr<UnseenParts> ImportRows::Unseen() {
  v1::Item of_vector_files;
  for (const Source& source : sources_) {
    if (source.field.empty()) {
      of_vector_files.mutable_value();
    } else {
      (*of_vector_files.mutable_keys())[source.field];
    }
  }
  UnseenParts parts(schema_);
  parts.See(of_vector_files);
  for (const auto& [row, item] : attributes_) parts.See(item);
  if (parts.empty()) return parts;
  for (const std::string& id : ids_) parts.SeeId(id);
  return parts;
}

absl::StatusOr<std::optional<SourceRow>> ImportRows::Next() {
  if (next_row_ == row_count()) return std::nullopt;
  SourceRow row;
  row.id = id(next_row_);
  row.item = ReadItem(next_row_);
  row.number = ++next_row_;
  if (row.item.ok()) return row;
  // The row is told once if it has the same number in the file.
  absl::Status status = row.item.status();
  for (const Source& source : sources_) {
    const std::string path = absl::StrCat(source.file->path(), ": ");
    status = ReplacePrefix(status, absl::StrCat(path, "row ", row.number, ": "),
                           path);
  }
  row.item = status;
  return row;
}

}  // namespace attendant
