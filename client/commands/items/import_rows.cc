#include "client/commands/items/import_rows.h"

#include <unistd.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "client/api/wire_vector.h"
#include "client/commands/fits/model_directory.h"
#include "client/commands/shared/command.h"
#include "client/commands/shared/convert.h"
#include "client/commands/shared/flags.h"
#include "client/files/ids.h"
#include "client/files/input.h"
#include "client/files/jsonl.h"
#include "core/base/ids.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Components that a key of `field` has, or a value if it is empty.
std::optional<std::int64_t> DimensionOf(const v1::CatalogSchema& schema,
                                        const std::string& field) {
  if (field.empty()) return schema.value_dimension();
  for (const v1::KeyField& key_field : schema.key_fields()) {
    if (key_field.name() == field) return key_field.dimension();
  }
  return std::nullopt;
}

constexpr absl::string_view kOpaqueValue = "opaque_value";

}  // namespace

InputOptions AddInputFlags(CLI::App& command, ImportInputs& inputs) {
  InputOptions options{};
  options.from =
      AddRepeated(command, "--from", inputs.directories,
                  "A directory that `attendant fit` wrote; several are joined "
                  "by id")
          ->type_name("DIR");
  options.ids =
      command
          .add_option("--ids", inputs.ids,
                      "Ids, one a line, of the rows of --keys and --values")
          ->type_name("FILE");
  options.keys = AddRepeated(command, "--keys", inputs.keys,
                             "Keys of a field as FIELD=FILE.npy, "
                             "FIELD=FILE.fvecs, or FIELD=FILE.txt with a row a "
                             "line")
                     ->type_name("FIELD=FILE")
                     ->check(CLI::Validator(Accepts(&ParseAssignment), ""))
                     ->needs(options.ids);
  command
      .add_option("--values", inputs.values,
                  "Values as FILE.npy, FILE.fvecs or FILE.txt")
      ->type_name("FILE")
      ->needs(options.ids);
  options.attributes = command
                           .add_option("--attributes", inputs.attributes,
                                       "Attributes, a JSON object a line: "
                                       "{\"id\": \"...\", \"price\": 2.5, "
                                       "...}; times as 2011-12-09 or RFC 3339 "
                                       "text, \"opaque_value\" as base64")
                           ->type_name("FILE");
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
    ATTENDANT_RETURN_IF_ERROR(rows->AddAttributes(inputs.attributes));
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
  // Without one the file is what a fit of another kind left behind.
  if (model.attributes.empty() || access(attributes.c_str(), F_OK) != 0) {
    return absl::OkStatus();
  }
  return AddAttributes(attributes);
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

absl::Status ImportRows::AddAttributes(const std::string& path) {
  attributes_path_ = path;
  absl::flat_hash_set<std::int64_t> seen;
  return ReadJsonLines(path, [&](std::int64_t /*line*/,
                                 const nlohmann::json& object) {
    const auto id = object.find("id");
    if (id == object.end() || !id->is_string()) {
      return absl::InvalidArgumentError(
          "every line needs the item's \"id\", a text");
    }
    const auto& text = id->get_ref<const std::string&>();
    ATTENDANT_RETURN_IF_ERROR(ValidateItemId(text, "id"));
    const std::int64_t row = RowOf(text);
    if (!seen.insert(row).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("id '", text, "' is not unique"));
    }
    auto& attributes = *attributes_[row].mutable_attributes();
    for (const auto& [name, value] : object.items()) {
      if (name == "id" || value.is_null()) continue;
      const v1::AttributeField* field = FindAttribute(schema_, name);
      if (field == nullptr && name == kOpaqueValue) {
        absl::StatusOr<std::string> bytes = BytesFrom(value);
        if (!bytes.ok()) return PrefixField(bytes.status(), name + ": ");
        v1::Item& item = attributes_[row];
        if (!item.opaque_value().empty() && item.opaque_value() != *bytes) {
          return absl::InvalidArgumentError(absl::StrCat(
              name, ": another file gives '", text, "' another value"));
        }
        item.set_opaque_value(*std::move(bytes));
        continue;
      }
      if (field == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat(name, ": the catalog declares no such attribute"));
      }
      const auto attribute = ToAttribute(value, field->type());
      if (!attribute.ok()) return PrefixField(attribute.status(), name + ": ");
      const auto before = attributes.find(name);
      if (before != attributes.end() && before->second.SerializeAsString() !=
                                            attribute->SerializeAsString()) {
        return absl::InvalidArgumentError(absl::StrCat(
            name, ": another file gives '", text, "' another value"));
      }
      attributes[name] = *attribute;
    }
    return absl::OkStatus();
  });
}

std::int64_t ImportRows::RowOf(const std::string& id) {
  const auto [entry, is_new] = row_of_.try_emplace(id, row_count());
  if (is_new) ids_.push_back(id);
  return entry->second;
}

absl::StatusOr<v1::Item> ImportRows::ReadItem(std::int64_t row) {
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
  return parts;
}

absl::StatusOr<std::optional<SourceRow>> ImportRows::Next() {
  if (next_row_ == row_count()) return std::nullopt;
  SourceRow row;
  row.id = id(next_row_);
  row.item = ReadItem(next_row_);
  row.number = ++next_row_;
  return row;
}

}  // namespace attendant
