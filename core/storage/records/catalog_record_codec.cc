#include "core/storage/records/catalog_record_codec.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/attention/softmax/score.h"
#include "core/base/ids.h"
#include "core/base/status.h"
#include "core/storage/records/json_members.h"

namespace attendant {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kRecordVersion = 1;

std::optional<IndexKind> IndexKindFromName(absl::string_view name) {
  for (const IndexKind kind :
       {IndexKind::kAuto, IndexKind::kFlat, IndexKind::kIvf, IndexKind::kHnsw,
        IndexKind::kLsh, IndexKind::kPq}) {
    if (Name(kind) == name) return kind;
  }
  return std::nullopt;
}

std::optional<AttributeType> AttributeTypeFromName(absl::string_view name) {
  for (int i = 1; i <= static_cast<int>(std::variant_size_v<AttributeValue>);
       ++i) {
    const auto type = static_cast<AttributeType>(i);
    if (attendant::Name(type) == name) return type;
  }
  return std::nullopt;
}

std::string ToString(absl::string_view view) { return std::string(view); }

Json Encode(const KeyFieldSchema& key_field) {
  Json json = {
      {"name", key_field.name},
      {"dimension", key_field.dim},
      {"score_kind", ToString(attendant::Name(key_field.score_kind))},
      {"index_kind", ToString(Name(key_field.index_kind))},
      {"temperature", key_field.temperature},
      {"combine_kind", ToString(attendant::Name(key_field.combine_kind))},
  };
  // Absent if false, as in records written before the option existed.
  if (key_field.keys_on_disk) json["keys_on_disk"] = true;
  if (!key_field.model.empty()) {
    json["model"] = {{"name", key_field.model.name},
                     {"version", key_field.model.version}};
  }
  return json;
}

bool Decode(const Json& json, KeyFieldSchema& key_field) {
  JsonMembers members(json);
  key_field.name = members.String("name");
  key_field.dim = members.Integer("dimension");
  key_field.score_kind =
      members.Kind(ScoreKindFromName(members.String("score_kind")));
  key_field.index_kind =
      members.Kind(IndexKindFromName(members.String("index_kind")));
  key_field.temperature = members.Number("temperature");
  key_field.combine_kind =
      members.Kind(CombineKindFromName(members.String("combine_kind")));
  if (members.ok() && json.contains("keys_on_disk")) {
    key_field.keys_on_disk = members.Boolean("keys_on_disk");
  }
  if (!members.ok() || !json.contains("model")) return members.ok();
  JsonMembers model(json["model"]);
  key_field.model.name = model.String("name");
  key_field.model.version = model.Integer("version");
  return model.ok() && !key_field.model.empty() && key_field.model.version >= 1;
}

Json Encode(const AttributeSchema& attribute) {
  return {{"name", attribute.name},
          {"type", ToString(attendant::Name(attribute.type))}};
}

bool Decode(const Json& json, AttributeSchema& attribute) {
  JsonMembers members(json);
  attribute.name = members.String("name");
  attribute.type = members.Kind(AttributeTypeFromName(members.String("type")));
  return members.ok();
}

template <typename T>
bool DecodeAll(const Json& array, std::vector<T>& out) {
  for (const Json& json : array) {
    if (!Decode(json, out.emplace_back())) return false;
  }
  return true;
}

}  // namespace

std::string EncodeCatalogRecord(const CatalogRecord& record) {
  Json key_fields = Json::array();
  for (const KeyFieldSchema& key_field : record.schema.key_fields) {
    key_fields.push_back(Encode(key_field));
  }
  Json attributes = Json::array();
  for (const AttributeSchema& attribute : record.schema.attributes) {
    attributes.push_back(Encode(attribute));
  }
  const Json json = {
      {"version", kRecordVersion},
      {"uid", record.uid},
      {"create_time_ns", absl::ToUnixNanos(record.create_time)},
      {"value_dimension", record.schema.value_dim},
      {"key_fields", std::move(key_fields)},
      {"attributes", std::move(attributes)},
  };
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<CatalogRecord> DecodeCatalogRecord(absl::string_view name,
                                                  absl::string_view text) {
  const auto damaged = [&](absl::string_view what) {
    return absl::DataLossError(absl::StrCat("the record of catalog \"", name,
                                            "\" is damaged: ", what));
  };
  const Json json = Json::parse(text.begin(), text.end(), nullptr,
                                /*allow_exceptions=*/false);
  if (json.is_discarded()) return damaged("not JSON");
  JsonMembers members(json);
  const std::int64_t version = members.Integer("version");
  if (members.ok() && version != kRecordVersion) {
    return damaged(
        absl::StrCat("version ", version, ", want ", kRecordVersion));
  }
  CatalogRecord record;
  record.name = std::string(name);
  record.uid = members.String("uid");
  record.create_time = absl::FromUnixNanos(members.Integer("create_time_ns"));
  record.schema.value_dim = members.Integer("value_dimension");
  if (!DecodeAll(members.Array("key_fields"), record.schema.key_fields) ||
      !DecodeAll(members.Array("attributes"), record.schema.attributes) ||
      !members.ok()) {
    return damaged("a member is missing or of another type");
  }
  absl::Status valid = ValidateCatalogName(record.name);
  if (valid.ok()) valid = ValidateSchema(record.schema);
  if (!valid.ok()) return damaged(valid.message());
  if (!IsCatalogUid(record.uid)) return damaged("its uid");
  return record;
}

bool IsCatalogUid(absl::string_view uid) {
  return uid.size() == 16 && IsLowerHex(uid);
}

}  // namespace attendant
