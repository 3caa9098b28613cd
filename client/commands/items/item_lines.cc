#include "client/commands/items/item_lines.h"

#include <google/protobuf/util/json_util.h>

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
#include "client/files/csv.h"
#include "client/files/json.h"
#include "core/base/ids.h"
#include "core/base/status.h"
#include "nlohmann/json.hpp"

namespace attendant {
namespace {

// As large as a line may be.
constexpr std::size_t kMaxReplyBytes = 16 << 20;

// Dumping can't fail: the server stores only UTF-8.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

// A reader may parse a double first and round twice. If the shortest text would
// then yield another float, writes nine digits, which never do.
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
  // JSON readers take "-0" for an integer, which has no sign.
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

// Returns the map ordered by name.
template <typename Map>
std::map<std::string, typename Map::mapped_type> Sorted(const Map& map) {
  return {map.begin(), map.end()};
}

absl::Status Wrong(const nlohmann::json& got, absl::string_view want) {
  return absl::InvalidArgumentError(
      absl::StrCat("got ", got.type_name(), ", want ", want));
}

// Returns the list of numbers of a vector: `value` itself, or the list within
// ProtoJSON's objects.
const nlohmann::json& ListOf(const nlohmann::json& value) {
  if (value.is_object() && value.size() == 1 && value.contains("floats")) {
    const nlohmann::json& floats = value["floats"];
    if (floats.is_object() && floats.contains("values")) {
      return floats["values"];
    }
  }
  return value;
}

absl::StatusOr<v1::Vector> VectorFrom(const nlohmann::json& json) {
  const nlohmann::json& value = ListOf(json);
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
  if (field == nullptr) {
    return absl::InvalidArgumentError(
        "the catalog declares no such attribute (`attendant catalog update "
        "CATALOG --attribute NAME:TYPE` declares another)");
  }
  if (!value.is_object()) return ToAttribute(value, field->type());
  v1::AttributeValue attribute;
  const auto status =
      google::protobuf::util::JsonStringToMessage(value.dump(), &attribute);
  // The server checks that it is of the declared type.
  if (status.ok()) return attribute;
  return Wrong(value, "a value, or {\"KIND\": VALUE} as `items get` prints it");
}

absl::Status ReadMember(const v1::CatalogSchema& schema,
                        const std::string& name, const nlohmann::json& value,
                        v1::Item& item) {
  if (name == "id" || name == "sequence") return absl::OkStatus();
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
  if (name == "opaque_value" || name == "opaqueValue") {
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

// Reads the items of a reply of `items get --json`, whose first line is "{".
absl::StatusOr<nlohmann::json> ItemsOfReply(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
  std::string text;
  std::string line;
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool more, lines.Next(line));
    if (!more) break;
    absl::StrAppend(&text, line, "\n");
    if (text.size() > kMaxReplyBytes) {
      return FileError(path, "a JSON object of more than 16 MiB");
    }
  }
  const auto reply = ParseJsonObjectWithUniqueNames(text);
  if (!reply.ok()) return FileError(path, reply.status().message());
  const auto items = reply->find("items");
  if (items == reply->end() || !items->is_array()) {
    return FileError(path,
                     "got a JSON object over several lines without "
                     "\"items\", want one item per line");
  }
  return *items;
}

SourceRow RowFrom(const v1::CatalogSchema& schema, std::int64_t number,
                  const absl::StatusOr<nlohmann::json>& object) {
  SourceRow row;
  row.number = number;
  if (!object.ok()) {
    row.item = object.status();
  } else if (!object->is_object()) {
    row.item = Wrong(*object, "an object");
  } else {
    row.id = TextOf(*object, "id");
    row.item = ItemFrom(schema, *object);
  }
  return row;
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
  if (IsCsv(path)) {
    return FileError(path,
                     "got CSV, want one JSON object per line, as in {\"id\": "
                     "\"a\", \"keys\": {\"FIELD\": [0.5, 1]}}; attributes may "
                     "be CSV, with --attributes");
  }
  std::int64_t row_count = 0;
  ATTENDANT_ASSIGN_OR_RETURN(LineReader counted, LineReader::Open(path));
  std::optional<nlohmann::json> items;
  std::string line;
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool more, counted.Next(line));
    if (!more) break;
    if (IsBlank(line)) continue;
    if (row_count == 0 && absl::StripAsciiWhitespace(line) == "{") {
      ATTENDANT_ASSIGN_OR_RETURN(items, ItemsOfReply(path));
      row_count = static_cast<std::int64_t>(items->size());
      break;
    }
    ++row_count;
  }
  ATTENDANT_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
  return std::unique_ptr<ItemLines>(
      new ItemLines(std::move(lines), row_count, std::move(items), schema));
}

absl::StatusOr<UnseenParts> ItemLines::Unseen() {
  ATTENDANT_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(lines_.path()));
  UnseenParts parts(schema_);
  ItemLines all(std::move(lines), row_count_, reply_, schema_);
  while (!parts.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto row, all.Next());
    if (!row.has_value()) break;
    if (row->item.ok()) parts.See(*row->item);
  }
  return parts;
}

absl::StatusOr<std::optional<SourceRow>> ItemLines::Next() {
  if (reply_.has_value()) {
    if (read_count_ == row_count_) return std::nullopt;
    const auto position = static_cast<std::size_t>(read_count_++);
    return RowFrom(schema_, read_count_, (*reply_)[position]);
  }
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
  return RowFrom(schema_, lines_.line_number(),
                 ParseJsonObjectWithUniqueNames(line_));
}

}  // namespace attendant
