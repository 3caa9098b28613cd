#include "core/storage/records/item.h"

#include <cmath>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// True if the wire's Timestamp can represent `time`.
bool IsWireTime(absl::Time time) {
  static const absl::Time begin =
      absl::FromCivil(absl::CivilSecond(1, 1, 1, 0, 0, 0), absl::UTCTimeZone());
  static const absl::Time end = absl::FromCivil(
      absl::CivilSecond(10000, 1, 1, 0, 0, 0), absl::UTCTimeZone());
  return begin <= time && time < end;
}

absl::Status ValidateKeyField(const KeyFieldSchema& key_field,
                              absl::string_view path) {
  ATTENDANT_RETURN_IF_ERROR(
      ValidateFieldName(key_field.name, absl::StrCat(path, "name")));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(key_field.dim, 1, kMaxDimension,
                                       absl::StrCat(path, "dimension")));
  switch (key_field.score_kind) {
    case ScoreKind::kDot:
    case ScoreKind::kScaledDot:
    case ScoreKind::kCosine:
      break;
    case ScoreKind::kBilinear:
    case ScoreKind::kAdditive:
      if (!key_field.model.empty()) break;
      return InvalidField(
          absl::StrCat(path, "model"), "none",
          absl::StrCat("a model for ", Name(key_field.score_kind)));
    default:
      return InvalidField(absl::StrCat(path, "score_kind"), "an unknown kind",
                          "DOT, SCALED_DOT, COSINE, BILINEAR or ADDITIVE");
  }
  switch (key_field.index_kind) {
    case IndexKind::kAuto:
    case IndexKind::kFlat:
    case IndexKind::kIvf:
    case IndexKind::kHnsw:
    case IndexKind::kLsh:
    case IndexKind::kPq:
      break;
    default:
      return InvalidField(absl::StrCat(path, "index_kind"), "an unknown kind",
                          "AUTO, FLAT, IVF, HNSW, LSH or PQ");
  }
  if (key_field.keys_on_disk && key_field.index_kind != IndexKind::kAuto &&
      !MayKeepKeysOnDisk(key_field.index_kind)) {
    return InvalidField(
        absl::StrCat(path, "keys_on_disk"),
        absl::StrCat("true with index_kind ", Name(key_field.index_kind)),
        "false, or index_kind AUTO, IVF or PQ");
  }
  switch (key_field.combine_kind) {
    case CombineKind::kSum:
    case CombineKind::kSumOverSqrtCount:
    case CombineKind::kUnit:
      break;
    default:
      return InvalidField(absl::StrCat(path, "combine_kind"), "an unknown kind",
                          "SUM, SUM_OVER_SQRT_COUNT or UNIT");
  }
  return ValidateTemperature(key_field.temperature,
                             absl::StrCat(path, "temperature"));
}

absl::Status ValidateAttributeSchema(const AttributeSchema& attribute,
                                     absl::string_view path) {
  ATTENDANT_RETURN_IF_ERROR(
      ValidateFieldName(attribute.name, absl::StrCat(path, "name")));
  if (Name(attribute.type).empty()) {
    return InvalidField(
        absl::StrCat(path, "type"), "an unknown type",
        "bool, int64, double, string, string list or timestamp");
  }
  return absl::OkStatus();
}

absl::Status ValidateText(absl::string_view text) {
  if (IsValidUtf8(text)) return absl::OkStatus();
  return InvalidField("", "malformed text", "UTF-8");
}

// The field of an error is empty or a position, for the caller to prefix.
absl::Status ValidateKey(std::span<const float> key,
                         const KeyFieldSchema& key_field) {
  if (key.size() != static_cast<std::size_t>(key_field.dim)) {
    return InvalidField("", absl::StrCat(key.size(), " components"),
                        absl::StrCat(key_field.dim));
  }
  ATTENDANT_RETURN_IF_ERROR(ValidateFinite(key, ""));
  if (key_field.score_kind == ScoreKind::kCosine && Norm(key) == 0) {
    return InvalidField("", "norm 0",
                        "a norm above 0, as the score kind is COSINE");
  }
  return absl::OkStatus();
}

absl::Status ValidateKeys(const Item& item, const CatalogSchema& schema) {
  if (item.keys.size() != schema.key_fields.size()) {
    return InvalidField("keys", absl::StrCat(item.keys.size(), " fields"),
                        absl::StrCat(schema.key_fields.size(), " fields"));
  }
  bool any = false;
  for (std::size_t f = 0; f < item.keys.size(); ++f) {
    const KeyFieldSchema& key_field = schema.key_fields[f];
    const std::vector<float>& key = item.keys[f];
    if (key.empty()) continue;
    any = true;
    if (const absl::Status status = ValidateKey(key, key_field); !status.ok()) {
      return PrefixField(status, absl::StrCat("keys[", key_field.name, "]"));
    }
  }
  if (!any) return InvalidField("keys", "none", "at least one");
  return absl::OkStatus();
}

// The keys must be valid.
absl::Status ValidateValue(const Item& item, const CatalogSchema& schema) {
  if (!item.value.empty()) {
    if (item.value.size() != static_cast<std::size_t>(schema.value_dim)) {
      return InvalidField("value",
                          absl::StrCat(item.value.size(), " components"),
                          absl::StrCat(schema.value_dim));
    }
    return ValidateFinite(item.value, "value");
  }
  if (schema.value_dim == 0) return absl::OkStatus();
  for (std::size_t f = 0; f < item.keys.size(); ++f) {
    const KeyFieldSchema& key_field = schema.key_fields[f];
    if (item.keys[f].empty() || key_field.dim == schema.value_dim) continue;
    return InvalidField(
        "value", "none",
        absl::StrCat(schema.value_dim, " components, as keys[", key_field.name,
                     "] of ", key_field.dim, " can't be pooled in its place"));
  }
  return absl::OkStatus();
}

// Errors as for ValidateKey.
absl::Status ValidateAttributeValue(const AttributeValue& value,
                                    AttributeType type) {
  if (TypeOf(value) != type) {
    return InvalidField("", Name(TypeOf(value)), Name(type));
  }
  if (const auto* number = std::get_if<double>(&value)) {
    if (!std::isfinite(*number)) {
      return InvalidField("", absl::StrCat(*number), "a finite number");
    }
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    return ValidateText(*text);
  } else if (const auto* texts =
                 std::get_if<std::vector<std::string>>(&value)) {
    for (std::size_t i = 0; i < texts->size(); ++i) {
      if (const absl::Status status = ValidateText((*texts)[i]); !status.ok()) {
        return PrefixField(status, absl::StrCat("[", i, "]"));
      }
    }
  } else if (const auto* time = std::get_if<absl::Time>(&value)) {
    if (!IsWireTime(*time)) {
      return InvalidField("", "a time out of range", "years 1 to 9999");
    }
  }
  return absl::OkStatus();
}

std::int64_t TextBytes(const AttributeValue& value) {
  std::size_t bytes = 0;
  if (const auto* text = std::get_if<std::string>(&value)) {
    bytes = text->size();
  } else if (const auto* texts =
                 std::get_if<std::vector<std::string>>(&value)) {
    // An empty text takes space too.
    for (const std::string& entry : *texts) bytes += entry.size() + 2;
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace

std::int64_t AttributeBytes(const Item& item) {
  std::int64_t bytes = 0;
  for (const auto& [position, value] : item.attributes)
    bytes += TextBytes(value);
  return bytes;
}

namespace {

absl::Status ValidateAttributes(const Item& item, const CatalogSchema& schema,
                                std::int64_t most_bytes) {
  int last = -1;
  for (const auto& [position, value] : item.attributes) {
    if (position <= last ||
        position >= static_cast<int>(schema.attributes.size())) {
      return InvalidField(
          "attributes", absl::StrCat("position ", position, " after ", last),
          absl::StrCat("ascending positions below ", schema.attributes.size()));
    }
    last = position;
    const AttributeSchema& attribute = schema.attributes[position];
    if (const absl::Status status =
            ValidateAttributeValue(value, attribute.type);
        !status.ok()) {
      return PrefixField(status,
                         absl::StrCat("attributes[", attribute.name, "]"));
    }
  }
  return CheckCount(AttributeBytes(item), 0, most_bytes, "attributes",
                    " bytes of text");
}

// Returns the position of `name` in a short list of named objects, or -1.
template <typename T>
int IndexOf(const std::vector<T>& fields, absl::string_view name) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

absl::string_view Name(AttributeType type) {
  switch (type) {
    case AttributeType::kBool:
      return "bool";
    case AttributeType::kInt64:
      return "int64";
    case AttributeType::kDouble:
      return "double";
    case AttributeType::kString:
      return "string";
    case AttributeType::kStringList:
      return "string list";
    case AttributeType::kTimestamp:
      return "timestamp";
  }
  return "";
}

std::string WithArticle(AttributeType type) {
  return absl::StrCat(type == AttributeType::kInt64 ? "an " : "a ", Name(type));
}

void KeyFieldSchema::TakeDefaults(const KeyFieldSchema& from) {
  index_kind = from.index_kind;
  temperature = from.temperature;
  combine_kind = from.combine_kind;
  model = from.model;
  keys_on_disk = from.keys_on_disk;
}

int CatalogSchema::KeyFieldIndex(absl::string_view name) const {
  return IndexOf(key_fields, name);
}
int CatalogSchema::AttributeIndex(absl::string_view name) const {
  return IndexOf(attributes, name);
}

absl::Status ValidateSchema(const CatalogSchema& schema) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(static_cast<std::int64_t>(schema.key_fields.size()), 1,
                 kMaxKeyFields, "schema.key_fields"));
  for (std::size_t i = 0; i < schema.key_fields.size(); ++i) {
    const std::string path = absl::StrCat("schema.key_fields[", i, "].");
    const KeyFieldSchema& key_field = schema.key_fields[i];
    ATTENDANT_RETURN_IF_ERROR(ValidateKeyField(key_field, path));
    if (schema.KeyFieldIndex(key_field.name) != static_cast<int>(i)) {
      return InvalidField(absl::StrCat(path, "name"),
                          absl::StrCat("\"", key_field.name, "\" again"),
                          "a unique name");
    }
  }
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(schema.value_dim, 0, kMaxDimension, "schema.value_dimension"));
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(static_cast<std::int64_t>(schema.attributes.size()), 0,
                 kMaxAttributes, "schema.attributes"));
  for (std::size_t i = 0; i < schema.attributes.size(); ++i) {
    const std::string path = absl::StrCat("schema.attributes[", i, "].");
    const AttributeSchema& attribute = schema.attributes[i];
    ATTENDANT_RETURN_IF_ERROR(ValidateAttributeSchema(attribute, path));
    if (schema.AttributeIndex(attribute.name) != static_cast<int>(i)) {
      return InvalidField(absl::StrCat(path, "name"),
                          absl::StrCat("\"", attribute.name, "\" again"),
                          "a unique name");
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateFieldName(absl::string_view name,
                               absl::string_view field) {
  bool valid = !name.empty() && name.size() <= kMaxNameBytes &&
               absl::ascii_islower(name[0]);
  for (const char c : name) {
    valid =
        valid && (absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_');
  }
  if (valid) return absl::OkStatus();
  return InvalidField(
      field, absl::StrCat("\"", name, "\""),
      absl::StrCat("[a-z][a-z0-9_]* of at most ", kMaxNameBytes, " bytes"));
}

absl::Status ValidateCatalogName(absl::string_view name,
                                 absl::string_view field) {
  bool valid = !name.empty() && name.size() <= kMaxNameBytes &&
               (absl::ascii_islower(name[0]) || absl::ascii_isdigit(name[0]));
  for (const char c : name) {
    valid = valid && (absl::ascii_islower(c) || absl::ascii_isdigit(c) ||
                      c == '_' || c == '-');
  }
  if (valid) return absl::OkStatus();
  return InvalidField(
      field, absl::StrCat("'", name, "'"),
      absl::StrCat("[a-z0-9][a-z0-9_-]* of at most ", kMaxNameBytes, " bytes"));
}

absl::Status ValidateItem(const Item& item, const CatalogSchema& schema,
                          std::int64_t most_attribute_bytes) {
  ATTENDANT_RETURN_IF_ERROR(ValidateItemId(item.id, "id"));
  ATTENDANT_RETURN_IF_ERROR(ValidateKeys(item, schema));
  ATTENDANT_RETURN_IF_ERROR(ValidateValue(item, schema));
  ATTENDANT_RETURN_IF_ERROR(
      ValidateAttributes(item, schema, most_attribute_bytes));
  return CheckCount(static_cast<std::int64_t>(item.opaque_value.size()), 0,
                    kMaxOpaqueValueBytes, "opaque_value", " bytes");
}

}  // namespace attendant
