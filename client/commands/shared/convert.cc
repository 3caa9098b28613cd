#include "client/commands/shared/convert.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/api/wire_vector.h"
#include "client/commands/shared/command.h"
#include "client/commands/shared/event_time.h"

namespace attendant {
namespace {

void SpellOut(v1::Vector& vector) {
  const auto components = FromVector(vector);
  if (!components.ok()) return;
  vector.mutable_floats()->mutable_values()->Assign(components->begin(),
                                                    components->end());
}

template <typename Map>
void SpellOutAll(Map& vectors) {
  for (auto& [name, vector] : vectors) SpellOut(vector);
}

constexpr char kListWanted[] = "a list of texts, as in [\"a\", \"b\"]";

absl::Status WrongType(const nlohmann::json& value, absl::string_view want) {
  constexpr std::size_t kShown = 40;
  std::string got =
      value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (got.size() > kShown) got = got.substr(0, kShown) + "...";
  return absl::InvalidArgumentError(absl::StrCat("got ", got, ", want ", want));
}

}  // namespace

void SpellOutVectors(v1::Item& item) {
  SpellOutAll(*item.mutable_keys());
  if (item.has_value()) SpellOut(*item.mutable_value());
}

void SpellOutVectors(v1::AttendResponse& response) {
  for (v1::AttendedItem& item : *response.mutable_items()) {
    SpellOutAll(*item.mutable_keys());
    if (item.has_value()) SpellOut(*item.mutable_value());
  }
}

absl::StatusOr<v1::AttributeValue> ToAttribute(const nlohmann::json& value,
                                               v1::AttributeType type) {
  v1::AttributeValue attribute;
  switch (type) {
    case v1::ATTRIBUTE_TYPE_BOOL:
      if (!value.is_boolean()) return WrongType(value, "true or false");
      attribute.set_bool_value(value.get<bool>());
      return attribute;
    case v1::ATTRIBUTE_TYPE_INT64:
      if (!value.is_number_integer() ||
          (value.is_number_unsigned() &&
           value.get<std::uint64_t>() >
               std::uint64_t{std::numeric_limits<std::int64_t>::max()})) {
        return WrongType(value, "a signed 64-bit integer");
      }
      attribute.set_int64_value(value.get<std::int64_t>());
      return attribute;
    case v1::ATTRIBUTE_TYPE_DOUBLE:
      if (!value.is_number() || !std::isfinite(value.get<double>())) {
        return WrongType(value, "a finite number");
      }
      attribute.set_double_value(value.get<double>());
      return attribute;
    case v1::ATTRIBUTE_TYPE_STRING:
      if (!value.is_string()) return WrongType(value, "a text");
      attribute.set_string_value(value.get<std::string>());
      return attribute;
    case v1::ATTRIBUTE_TYPE_STRING_LIST:
      if (!value.is_array()) return WrongType(value, kListWanted);
      attribute.mutable_string_list_value();
      for (const nlohmann::json& text : value) {
        if (!text.is_string()) return WrongType(value, kListWanted);
        attribute.mutable_string_list_value()->add_values(
            text.get<std::string>());
      }
      return attribute;
    case v1::ATTRIBUTE_TYPE_TIMESTAMP: {
      const auto time = value.is_string()
                            ? ParseDateTime(value.get<std::string>())
                            : std::nullopt;
      if (!time.has_value()) return WrongType(value, kTimeWanted);
      *attribute.mutable_timestamp_value() = ToTimestamp(*time);
      return attribute;
    }
    default:
      return absl::InvalidArgumentError("the attribute's type is unknown");
  }
}

const v1::AttributeField* FindAttribute(const v1::CatalogSchema& schema,
                                        const std::string& name) {
  for (const v1::AttributeField& attribute : schema.attributes()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

std::string NoSuchField(const v1::CatalogSchema& schema,
                        const std::string& field) {
  std::vector<std::string> names;
  for (const v1::KeyField& key_field : schema.key_fields()) {
    names.push_back(key_field.name());
  }
  return absl::StrCat("the catalog has no key field '", field,
                      "'; it has: ", absl::StrJoin(names, ", "));
}

absl::StatusOr<std::string> BytesFrom(const nlohmann::json& value) {
  std::string bytes;
  if (value.is_string() &&
      absl::Base64Unescape(value.get_ref<const std::string&>(), &bytes)) {
    return bytes;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "got ", value.is_string() ? "another text" : value.type_name(),
      ", want base64"));
}

VectorText DescribeComponents(std::span<const float> components,
                              std::size_t shown_count) {
  double square = 0;
  std::string first;
  for (std::size_t i = 0; i < components.size(); ++i) {
    const double component = components[i];
    square += component * component;
    if (i < shown_count) {
      absl::StrAppend(&first, i == 0 ? "" : ", ", FormatNumber(component));
    }
  }
  return {
      .first = absl::StrCat("[", first,
                            components.size() > shown_count ? ", ...]" : "]"),
      .size = absl::StrCat(
          CountOf(static_cast<std::int64_t>(components.size()), "component"),
          ", norm ", FormatNumber(std::sqrt(square)))};
}

std::string AttributeText(const v1::AttributeValue& value) {
  switch (value.kind_case()) {
    case v1::AttributeValue::kBoolValue:
      return value.bool_value() ? "true" : "false";
    case v1::AttributeValue::kInt64Value:
      return absl::StrCat(value.int64_value());
    case v1::AttributeValue::kDoubleValue:
      return absl::StrCat(value.double_value());
    case v1::AttributeValue::kStringValue:
      return value.string_value();
    case v1::AttributeValue::kStringListValue:
      return absl::StrJoin(value.string_list_value().values(), ", ");
    case v1::AttributeValue::kTimestampValue:
      // A filter takes years of four digits; absl::RFC3339_full writes fewer
      // before the year 1000.
      return absl::FormatTime(
          "%E4Y-%m-%dT%H:%M:%E*SZ",
          absl::FromUnixSeconds(value.timestamp_value().seconds()) +
              absl::Nanoseconds(value.timestamp_value().nanos()),
          absl::UTCTimeZone());
    case v1::AttributeValue::KIND_NOT_SET:
      return "";
  }
  return "";
}

}  // namespace attendant
