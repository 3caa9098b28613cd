#include "service/convert/item.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/convert/time.h"
#include "service/convert/vector.h"

namespace attendant {
namespace {

// Writes the attribute value with its type.
struct AttributeWriter {
  v1::AttributeValue* wire;

  void operator()(bool value) const { wire->set_bool_value(value); }
  void operator()(std::int64_t value) const { wire->set_int64_value(value); }
  void operator()(double value) const { wire->set_double_value(value); }
  void operator()(const std::string& value) const {
    wire->set_string_value(value);
  }
  void operator()(const std::vector<std::string>& values) const {
    v1::StringList* list = wire->mutable_string_list_value();
    for (const std::string& value : values) list->add_values(value);
  }
  void operator()(absl::Time time) const {
    TimeToProto(time, wire->mutable_timestamp_value());
  }
};

absl::Status KeysFromProto(const v1::Item& wire, const CatalogSchema& schema,
                           Item& item) {
  item.keys.resize(schema.key_fields.size());
  for (const auto& [name, vector] : wire.keys()) {
    const int field = schema.KeyFieldIndex(name);
    if (field < 0) {
      return InvalidField(absl::StrCat("keys[", name, "]"),
                          "an undeclared key field",
                          "a key field of the schema");
    }
    absl::StatusOr<std::vector<float>> key = VectorFromProto(vector);
    if (!key.ok()) {
      return PrefixField(key.status(), absl::StrCat("keys[", name, "]."));
    }
    item.keys[field] = *std::move(key);
  }
  return absl::OkStatus();
}

absl::Status AttributesFromProto(const v1::Item& wire,
                                 const CatalogSchema& schema, Item& item) {
  item.attributes.reserve(wire.attributes().size());
  for (const auto& [name, attribute] : wire.attributes()) {
    const int position = schema.AttributeIndex(name);
    if (position < 0) {
      return InvalidField(absl::StrCat("attributes[", name, "]"),
                          "an undeclared attribute",
                          "an attribute that the schema declares");
    }
    absl::StatusOr<AttributeValue> value = AttributeFromProto(attribute);
    if (!value.ok()) {
      return PrefixField(value.status(),
                         absl::StrCat("attributes[", name, "]."));
    }
    // Truncated to microseconds, the precision of replies and comparisons.
    if (auto* moment = std::get_if<absl::Time>(&*value)) {
      *moment = absl::FromUnixMicros(absl::ToUnixMicros(*moment));
    }
    item.attributes.emplace_back(position, *std::move(value));
  }
  std::ranges::sort(item.attributes, [](const auto& a, const auto& b) {
    return a.first < b.first;
  });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AttributeValue> AttributeFromProto(
    const v1::AttributeValue& wire) {
  switch (wire.kind_case()) {
    case v1::AttributeValue::kBoolValue:
      return AttributeValue(wire.bool_value());
    case v1::AttributeValue::kInt64Value:
      return AttributeValue(std::int64_t{wire.int64_value()});
    case v1::AttributeValue::kDoubleValue:
      return AttributeValue(wire.double_value());
    case v1::AttributeValue::kStringValue:
      return AttributeValue(wire.string_value());
    case v1::AttributeValue::kStringListValue: {
      const auto& values = wire.string_list_value().values();
      return AttributeValue(
          std::vector<std::string>(values.begin(), values.end()));
    }
    case v1::AttributeValue::kTimestampValue: {
      absl::StatusOr<absl::Time> time = TimeFromProto(wire.timestamp_value());
      if (!time.ok()) return PrefixField(time.status(), "timestamp_value.");
      return AttributeValue(*time);
    }
    case v1::AttributeValue::KIND_NOT_SET:
      break;
  }
  return InvalidField("kind", "none", "a value of the declared type");
}

absl::StatusOr<Item> ItemFromProto(const v1::Item& wire,
                                   const CatalogSchema& schema) {
  Item item;
  item.id = wire.id();
  ATTENDANT_RETURN_IF_ERROR(KeysFromProto(wire, schema, item));
  if (wire.has_value()) {
    ATTENDANT_ASSIGN_OR_RETURN(item.value,
                               VectorFromProto(wire.value(), "value"));
  }
  ATTENDANT_RETURN_IF_ERROR(AttributesFromProto(wire, schema, item));
  item.opaque_value = wire.opaque_value();
  return item;
}

void AttributesToProto(
    std::span<const std::pair<int, AttributeValue>> attributes,
    const CatalogSchema& schema, const ReadMask& mask,
    google::protobuf::Map<std::string, v1::AttributeValue>* wire) {
  if (!mask.any_attributes) return;
  for (const auto& [position, value] : attributes) {
    if (!mask.Reads(position)) continue;
    std::visit(AttributeWriter{&(*wire)[schema.attributes[position].name]},
               value);
  }
}

void ItemToProto(const StoredItem& item, const CatalogSchema& schema,
                 const ReadMask& mask, v1::Item* wire) {
  wire->set_id(item.id);
  wire->set_sequence(item.sequence);
  for (std::size_t i = 0; i < item.keys.size(); ++i) {
    if (!mask.keys[i] || item.keys[i].empty()) continue;
    VectorToProto(item.keys[i],
                  &(*wire->mutable_keys())[schema.key_fields[i].name]);
  }
  if (mask.value && !item.value.empty()) {
    VectorToProto(item.value, wire->mutable_value());
  }
  AttributesToProto(item.attributes, schema, mask, wire->mutable_attributes());
  if (mask.opaque_value) wire->set_opaque_value(item.opaque_value);
}

}  // namespace attendant
