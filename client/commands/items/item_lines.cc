#include "client/commands/items/item_lines.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/api/wire_vector.h"
#include "client/commands/shared/convert.h"
#include "client/files/json.h"
#include "core/base/ids.h"
#include "core/base/status.h"
#include "nlohmann/json.hpp"

namespace attendant {
namespace {

// Texts are UTF-8: the server stores no others.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

// Who reads it may read a double first, and round twice: the shortest text may
// then be another float, and nine digits are the same.
void AppendFloat(float number, std::string& text) {
  char digits[32];
  char* end = std::to_chars(digits, std::end(digits), number).ptr;
  double read = 0;
  std::from_chars(digits, end, read);
  if (static_cast<float>(read) != number) {
    end = std::to_chars(digits, std::end(digits), number,
                        std::chars_format::scientific, 8)
              .ptr;
  }
  text.append(digits, end);
  // Without it "-0" is an integer, which has no sign.
  if (number == 0 && std::signbit(number)) text += ".0";
}

absl::Status AppendVector(const v1::Vector& vector, std::string& text) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto components, FromVector(vector));
  for (std::size_t i = 0; i < components.size(); ++i) {
    text += i == 0 ? '[' : ',';
    AppendFloat(components[i], text);
  }
  text += components.empty() ? "[]" : "]";
  return absl::OkStatus();
}

nlohmann::json FromAttribute(const v1::AttributeValue& value) {
  switch (value.kind_case()) {
    case v1::AttributeValue::kBoolValue:
      return value.bool_value();
    case v1::AttributeValue::kInt64Value:
      return value.int64_value();
    case v1::AttributeValue::kDoubleValue:
      return value.double_value();
    case v1::AttributeValue::kStringListValue:
      return std::vector<std::string>(
          value.string_list_value().values().begin(),
          value.string_list_value().values().end());
    default:
      return AttributeText(value);
  }
}

// In the order of names.
template <typename Map>
std::map<std::string, typename Map::mapped_type> Sorted(const Map& map) {
  return {map.begin(), map.end()};
}

absl::Status Wrong(const nlohmann::json& got, absl::string_view want) {
  return absl::InvalidArgumentError(
      absl::StrCat("got ", got.type_name(), ", want ", want));
}

absl::StatusOr<v1::Vector> VectorFrom(const nlohmann::json& value) {
  if (!value.is_array()) return Wrong(value, "a list of numbers");
  std::vector<float> components;
  components.reserve(value.size());
  for (const nlohmann::json& component : value) {
    if (!component.is_number()) return Wrong(component, "numbers");
    components.push_back(component.get<float>());
    if (!std::isfinite(components.back())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "got ", component.dump(), ", want numbers of a 32-bit float"));
    }
  }
  return ToVector(components);
}

// Calls `take` with the name and value of each member that is not null.
template <typename Take>
absl::Status ForEachMember(const nlohmann::json& object, Take take) {
  if (!object.is_object()) return Wrong(object, "an object");
  for (const auto& [name, value] : object.items()) {
    if (value.is_null()) continue;
    if (const absl::Status status = take(name, value); !status.ok()) {
      return PrefixField(status, absl::StrCat(name, ": "));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::AttributeValue> AttributeFrom(
    const v1::CatalogSchema& schema, const std::string& name,
    const nlohmann::json& value) {
  const v1::AttributeField* const field = FindAttribute(schema, name);
  if (field != nullptr) return ToAttribute(value, field->type());
  return absl::InvalidArgumentError("the catalog declares no such attribute");
}

absl::Status ReadMember(const v1::CatalogSchema& schema,
                        const std::string& name, const nlohmann::json& value,
                        v1::Item& item) {
  if (name == "id") return absl::OkStatus();
  if (name == "keys") {
    return ForEachMember(
        value, [&](const std::string& field, const nlohmann::json& key) {
          ATTENDANT_ASSIGN_OR_RETURN((*item.mutable_keys())[field],
                                     VectorFrom(key));
          return absl::OkStatus();
        });
  }
  if (name == "value") {
    ATTENDANT_ASSIGN_OR_RETURN(*item.mutable_value(), VectorFrom(value));
    return absl::OkStatus();
  }
  if (name == "attributes") {
    return ForEachMember(
        value, [&](const std::string& attribute, const nlohmann::json& of_it) {
          ATTENDANT_ASSIGN_OR_RETURN((*item.mutable_attributes())[attribute],
                                     AttributeFrom(schema, attribute, of_it));
          return absl::OkStatus();
        });
  }
  if (name == "opaque_value") {
    ATTENDANT_ASSIGN_OR_RETURN(*item.mutable_opaque_value(), BytesFrom(value));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "an item has no such member; it has id, keys, value, attributes and "
      "opaque_value");
}

absl::StatusOr<v1::Item> ItemFrom(const v1::CatalogSchema& schema,
                                  const nlohmann::json& object) {
  v1::Item item;
  const auto id = object.find("id");
  if (id == object.end()) return absl::InvalidArgumentError("id: it has none");
  if (!id->is_string()) return PrefixField(Wrong(*id, "a text"), "id: ");
  item.set_id(id->get<std::string>());
  ATTENDANT_RETURN_IF_ERROR(ValidateItemId(item.id(), "id"));
  ATTENDANT_RETURN_IF_ERROR(ForEachMember(
      object, [&](const std::string& name, const nlohmann::json& value) {
        return ReadMember(schema, name, value, item);
      }));
  return item;
}

bool IsBlank(const std::string& line) {
  return absl::StripAsciiWhitespace(line).empty();
}

}  // namespace

absl::StatusOr<std::string> ItemToLine(const v1::Item& item) {
  std::string line = absl::StrCat("{\"id\":", Quoted(item.id()));
  if (!item.keys().empty()) {
    line += ",\"keys\":";
    char before = '{';
    for (const auto& [field, key] : Sorted(item.keys())) {
      absl::StrAppend(&line, std::string(1, before), Quoted(field), ":");
      ATTENDANT_RETURN_IF_ERROR(AppendVector(key, line));
      before = ',';
    }
    line += '}';
  }
  if (item.has_value()) {
    line += ",\"value\":";
    ATTENDANT_RETURN_IF_ERROR(AppendVector(item.value(), line));
  }
  if (!item.attributes().empty()) {
    nlohmann::json attributes;
    for (const auto& [name, value] : item.attributes()) {
      attributes[name] = FromAttribute(value);
    }
    absl::StrAppend(&line, ",\"attributes\":", attributes.dump());
  }
  if (!item.opaque_value().empty()) {
    absl::StrAppend(&line, ",\"opaque_value\":\"",
                    absl::Base64Escape(item.opaque_value()), "\"");
  }
  return line + "}\n";
}

absl::StatusOr<std::unique_ptr<ItemLines>> ItemLines::Open(
    const std::string& path, const v1::CatalogSchema& schema) {
  std::error_code error;
  if (std::filesystem::exists(path, error) &&
      !std::filesystem::is_regular_file(path, error)) {
    return FileError(path, "it is read twice, which takes a regular file");
  }
  std::int64_t row_count = 0;
  ATTENDANT_ASSIGN_OR_RETURN(LineReader counted, LineReader::Open(path));
  std::string line;
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool more, counted.Next(line));
    if (!more) break;
    if (!IsBlank(line)) ++row_count;
  }
  ATTENDANT_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
  return std::unique_ptr<ItemLines>(
      new ItemLines(std::move(lines), row_count, schema));
}

absl::StatusOr<UnseenParts> ItemLines::Unseen() {
  ATTENDANT_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(lines_.path()));
  UnseenParts parts(schema_);
  std::string line;
  while (!parts.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool more, lines.Next(line));
    if (!more) break;
    // What is no item Next tells.
    const auto object = ParseJsonObjectWithUniqueNames(line);
    if (!object.ok()) continue;
    const auto item = ItemFrom(schema_, *object);
    if (item.ok()) parts.See(*item);
  }
  return parts;
}

absl::StatusOr<std::optional<SourceRow>> ItemLines::Next() {
  do {
    ATTENDANT_ASSIGN_OR_RETURN(const bool more, lines_.Next(line_));
    if (!more && read_count_ == row_count_) return std::nullopt;
    if (!more) {
      return FileError(lines_.path(),
                       absl::StrCat("got ", read_count_, " items, and ",
                                    row_count_, " when they were counted"));
    }
  } while (IsBlank(line_));
  ++read_count_;
  SourceRow row;
  row.number = lines_.line_number();
  const auto object = ParseJsonObjectWithUniqueNames(line_);
  if (!object.ok()) {
    row.item = object.status();
    return row;
  }
  row.id = TextOf(*object, "id");
  row.item = ItemFrom(schema_, *object);
  return row;
}

}  // namespace attendant
