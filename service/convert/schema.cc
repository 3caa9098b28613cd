#include "service/convert/schema.h"

#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "service/convert/enum.h"
#include "service/convert/time.h"
#include "service/convert/vector.h"

namespace attendant {
namespace {

absl::StatusOr<KeyFieldSchema> KeyFieldFromProto(const v1::KeyField& wire) {
  KeyFieldSchema field;
  field.name = wire.name();
  field.dim = wire.dimension();
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto score_kind,
      OptionalEnumFromProto<ScoreKind>(wire.score_kind(), "score_kind"));
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto index_kind,
      OptionalEnumFromProto<IndexKind>(wire.index_kind(), "index_kind"));
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto combine_kind,
      OptionalEnumFromProto<CombineKind>(wire.combine_kind(), "combine_kind"));
  field.score_kind = score_kind.value_or(ScoreKind::kDot);
  field.index_kind = index_kind.value_or(IndexKind::kAuto);
  field.combine_kind = combine_kind.value_or(CombineKind::kSum);
  field.keys_on_disk = wire.keys_on_disk();
  if (wire.has_temperature()) field.temperature = wire.temperature();
  if (wire.has_model()) {
    field.model.name = wire.model().name();
    if (wire.model().has_version()) {
      field.model.version = wire.model().version();
      ATTENDANT_RETURN_IF_ERROR(CheckCount(
          field.model.version, 1, std::numeric_limits<std::int64_t>::max(),
          "model.version"));
    }
    if (field.model.name.empty()) {
      return InvalidField("model.name", "nothing", "the name of a model");
    }
  }
  return field;
}

absl::StatusOr<CatalogSet::FieldEncoder> EncoderFromProto(
    const v1::TextEncoder& wire, const CatalogSchema& schema) {
  const int field = schema.KeyFieldIndex(wire.key_field());
  if (field < 0) {
    return InvalidField("key_field", absl::StrCat("\"", wire.key_field(), "\""),
                        "a key field of the schema");
  }
  TextEncoderParts parts;
  parts.dim = schema.key_fields[field].dim;
  parts.terms.assign(wire.terms().begin(), wire.terms().end());
  parts.idf.assign(wire.idf().begin(), wire.idf().end());
  ATTENDANT_ASSIGN_OR_RETURN(
      parts.projection,
      FloatsFromBytes(wire.projection_float32_le(), "projection_float32_le"));
  ATTENDANT_ASSIGN_OR_RETURN(TextEncoder encoder,
                             TextEncoder::Create(std::move(parts)));
  return CatalogSet::FieldEncoder{wire.key_field(), std::move(encoder)};
}

// The defaults that an update changes.
struct DefaultsMask {
  bool temperature = false;
  bool combine_kind = false;
  bool index_kind = false;
  bool model = false;
  bool keys_on_disk = false;
};

absl::StatusOr<DefaultsMask> DefaultsMaskFromProto(
    const google::protobuf::FieldMask& wire) {
  DefaultsMask mask;
  for (int i = 0; i < wire.paths_size(); ++i) {
    const std::string& path = wire.paths(i);
    if (path == "temperature") {
      mask.temperature = true;
    } else if (path == "combine_kind") {
      mask.combine_kind = true;
    } else if (path == "index_kind") {
      mask.index_kind = true;
    } else if (path == "model") {
      mask.model = true;
    } else if (path == "keys_on_disk") {
      mask.keys_on_disk = true;
    } else {
      return InvalidField(absl::StrCat("update_mask.paths[", i, "]"),
                          absl::StrCat("\"", path, "\""),
                          "temperature, combine_kind, index_kind, model or "
                          "keys_on_disk");
    }
  }
  return mask;
}

absl::Status UpdateKeyField(const v1::KeyField& wire, const DefaultsMask& mask,
                            KeyFieldSchema& field) {
  ATTENDANT_ASSIGN_OR_RETURN(const KeyFieldSchema wanted,
                             KeyFieldFromProto(wire));
  if (mask.temperature) {
    // A reset to 1 is hardly ever meant and would undo a fitted temperature.
    if (!wire.has_temperature()) {
      return InvalidField("temperature", "none",
                          "a value, since update_mask names it");
    }
    ATTENDANT_RETURN_IF_ERROR(
        ValidateTemperature(wanted.temperature, "temperature"));
    field.temperature = wanted.temperature;
  }
  if (mask.combine_kind) field.combine_kind = wanted.combine_kind;
  if (mask.index_kind) field.index_kind = wanted.index_kind;
  if (mask.model) field.model = wanted.model;
  if (mask.keys_on_disk) field.keys_on_disk = wanted.keys_on_disk;
  return absl::OkStatus();
}

// Returns an attribute whose type is known; its name is not checked.
absl::StatusOr<AttributeSchema> AttributeFromProto(
    const v1::AttributeField& wire, const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(const AttributeType type,
                             RequiredEnumFromProto<AttributeType>(
                                 wire.type(), absl::StrCat(path, ".type")));
  return AttributeSchema{wire.name(), type};
}

// Appends what `schema` does not declare yet.
absl::Status AddAttributes(
    const google::protobuf::RepeatedPtrField<v1::AttributeField>& wire,
    CatalogSchema& schema) {
  // Checked before they are compared with each other.
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(wire.size(), 0, kMaxAttributes, "new_attributes"));
  for (int i = 0; i < wire.size(); ++i) {
    const std::string path = absl::StrCat("new_attributes[", i, "]");
    ATTENDANT_ASSIGN_OR_RETURN(AttributeSchema added,
                               AttributeFromProto(wire[i], path));
    ATTENDANT_RETURN_IF_ERROR(
        ValidateFieldName(added.name, absl::StrCat(path, ".name")));
    const int declared = schema.AttributeIndex(added.name);
    if (declared < 0) {
      schema.attributes.push_back(std::move(added));
      continue;
    }
    const AttributeType type = schema.attributes[declared].type;
    if (type != added.type) {
      return InvalidField(absl::StrCat(path, ".type"), WithArticle(added.type),
                          absl::StrCat(WithArticle(type), ", as '", added.name,
                                       "' is declared"));
    }
  }
  const std::size_t count = schema.attributes.size();
  if (count <= kMaxAttributes) return absl::OkStatus();
  return OverLimit("new_attributes",
                   absl::StrCat(count, " with those of the catalog"),
                   absl::StrCat("at most ", kMaxAttributes));
}

}  // namespace

absl::StatusOr<CatalogSchema> SchemaFromProto(const v1::CatalogSchema& wire) {
  // Checked before the fields are copied.
  ATTENDANT_RETURN_IF_ERROR(CheckCount(wire.key_fields_size(), 1, kMaxKeyFields,
                                       "schema.key_fields"));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(wire.attributes_size(), 0,
                                       kMaxAttributes, "schema.attributes"));
  CatalogSchema schema;
  schema.value_dim = wire.value_dimension();
  for (int i = 0; i < wire.key_fields_size(); ++i) {
    absl::StatusOr<KeyFieldSchema> field =
        KeyFieldFromProto(wire.key_fields(i));
    if (!field.ok()) {
      return PrefixField(field.status(),
                         absl::StrCat("schema.key_fields[", i, "]."));
    }
    schema.key_fields.push_back(*std::move(field));
  }
  for (int i = 0; i < wire.attributes_size(); ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(
        schema.attributes.emplace_back(),
        AttributeFromProto(wire.attributes(i),
                           absl::StrCat("schema.attributes[", i, "]")));
  }
  return schema;
}

void SchemaToProto(const CatalogSchema& schema, v1::CatalogSchema* wire) {
  for (const KeyFieldSchema& field : schema.key_fields) {
    v1::KeyField* key_field = wire->add_key_fields();
    key_field->set_name(field.name);
    key_field->set_dimension(static_cast<std::int32_t>(field.dim));
    key_field->set_score_kind(EnumToProto<v1::ScoreKind>(field.score_kind));
    key_field->set_index_kind(EnumToProto<v1::IndexKind>(field.index_kind));
    key_field->set_temperature(field.temperature);
    key_field->set_combine_kind(
        EnumToProto<v1::CombineKind>(field.combine_kind));
    key_field->set_keys_on_disk(field.keys_on_disk);
    if (!field.model.empty()) {
      key_field->mutable_model()->set_name(field.model.name);
      key_field->mutable_model()->set_version(field.model.version);
    }
  }
  wire->set_value_dimension(static_cast<std::int32_t>(schema.value_dim));
  for (const AttributeSchema& attribute : schema.attributes) {
    v1::AttributeField* field = wire->add_attributes();
    field->set_name(attribute.name);
    field->set_type(EnumToProto<v1::AttributeType>(attribute.type));
  }
}

absl::StatusOr<std::vector<CatalogSet::FieldEncoder>> EncodersFromProto(
    const google::protobuf::RepeatedPtrField<v1::TextEncoder>& wire,
    const CatalogSchema& schema) {
  std::vector<CatalogSet::FieldEncoder> encoders;
  std::set<std::string> seen;
  for (int i = 0; i < wire.size(); ++i) {
    const std::string prefix = absl::StrCat("text_encoders[", i, "].");
    absl::StatusOr<CatalogSet::FieldEncoder> encoder =
        EncoderFromProto(wire[i], schema);
    if (!encoder.ok()) return PrefixField(encoder.status(), prefix);
    if (!seen.insert(encoder->key_field).second) {
      return InvalidField(absl::StrCat(prefix, "key_field"),
                          absl::StrCat("\"", encoder->key_field, "\" again"),
                          "at most one encoder for a key field");
    }
    encoders.push_back(*std::move(encoder));
  }
  return encoders;
}

absl::StatusOr<CatalogSchema> UpdatedSchema(
    const v1::UpdateCatalogRequest& request, CatalogSchema schema) {
  ATTENDANT_ASSIGN_OR_RETURN(const DefaultsMask mask,
                             DefaultsMaskFromProto(request.update_mask()));
  const bool has_paths = request.update_mask().paths_size() > 0;
  if (request.key_fields_size() > 0 && !has_paths) {
    return InvalidField("update_mask", "no paths",
                        "the defaults of key_fields that change");
  }
  if (request.key_fields_size() == 0 && request.text_encoders_size() == 0 &&
      request.new_attributes_size() == 0 && !has_paths) {
    return InvalidField("key_fields", "none",
                        "key_fields or text_encoders to change, or "
                        "new_attributes");
  }
  if (request.key_fields_size() == 0 && has_paths) {
    return InvalidField("key_fields", "none",
                        "the key fields that update_mask changes");
  }
  std::set<std::string> seen;
  for (int i = 0; i < request.key_fields_size(); ++i) {
    const v1::KeyField& wire = request.key_fields(i);
    const std::string prefix = absl::StrCat("key_fields[", i, "].");
    KeyFieldSchema* field = nullptr;
    for (KeyFieldSchema& candidate : schema.key_fields) {
      if (candidate.name == wire.name()) field = &candidate;
    }
    if (field == nullptr) {
      return InvalidField(absl::StrCat(prefix, "name"),
                          absl::StrCat("\"", wire.name(), "\""),
                          "a key field of the schema");
    }
    if (!seen.insert(wire.name()).second) {
      return InvalidField(absl::StrCat(prefix, "name"),
                          absl::StrCat("\"", wire.name(), "\" again"),
                          "each key field at most once");
    }
    const absl::Status updated = UpdateKeyField(wire, mask, *field);
    if (!updated.ok()) return PrefixField(updated, prefix);
  }
  ATTENDANT_RETURN_IF_ERROR(AddAttributes(request.new_attributes(), schema));
  return schema;
}

void MemoryToProto(const MemoryParts& memory, v1::MemoryUse* wire) {
  wire->set_key_bytes(memory.keys);
  wire->set_code_bytes(memory.codes);
  wire->set_index_bytes(memory.index);
  wire->set_attribute_bytes(memory.attributes);
  wire->set_value_bytes(memory.values);
  wire->set_id_bytes(memory.ids);
  wire->set_tombstone_bytes(memory.tombstones);
  wire->set_encoder_bytes(memory.encoders);
  wire->set_database_bytes(memory.database);
  wire->set_mapped_bytes(memory.mapped);
}

void ServerMemoryToProto(const CatalogSet::MemoryUse& memory,
                         v1::ServerMemory* wire) {
  wire->set_cache_bytes(memory.cache_bytes);
  wire->set_write_buffer_bytes(memory.write_buffer_bytes);
  wire->set_resident_bytes(memory.budget.resident_bytes);
  wire->set_used_bytes(memory.budget.used_bytes);
  wire->set_limit_bytes(memory.budget.limit_bytes);
}

void CatalogToProto(const LiveCatalog& catalog, v1::Catalog* wire) {
  const CatalogRecord record = catalog.record();
  const std::shared_ptr<const Snapshot> snapshot = catalog.snapshot();
  wire->set_name(record.name);
  wire->set_uid(record.uid);
  SchemaToProto(record.schema, wire->mutable_schema());
  wire->set_item_count(snapshot->item_count());
  wire->set_sequence(snapshot->sequence);
  TimeToProto(record.create_time, wire->mutable_create_time());
  const MemoryParts memory = catalog.memory();
  wire->set_memory_bytes(memory.sum());
  MemoryToProto(memory, wire->mutable_memory());
  const std::string build_error(catalog.merge_status().message());
  if (!build_error.empty()) {
    wire->add_warnings(absl::StrCat(
        "the last index build failed; the state before it answers: ",
        build_error));
  }
  const std::string files_error(catalog.save_status().message());
  wire->set_segment_files_error(files_error);
  if (!files_error.empty()) {
    wire->add_warnings(absl::StrCat(
        "the index could not be written to its files, so that a restart would "
        "build it again: ",
        files_error));
  }
  const std::vector<IndexState> states = catalog.index_states();
  for (std::size_t i = 0; i < states.size(); ++i) {
    const IndexState& state = states[i];
    v1::IndexStatus* index = wire->add_indexes();
    index->set_key_field(record.schema.key_fields[i].name);
    index->set_active_kind(EnumToProto<v1::IndexKind>(state.active_kind));
    index->set_training(state.training);
    index->set_list_count(static_cast<std::int32_t>(state.list_count));
    index->set_probe_count(static_cast<std::int32_t>(state.probe_count));
    if (state.measured_recall.has_value()) {
      index->set_measured_recall(*state.measured_recall);
    }
    index->set_key_count(state.key_count);
    index->set_projected_key_count(state.projected_key_count);
    index->set_memory_bytes(state.memory_bytes);
    index->set_disk_bytes(state.disk_bytes);
    index->set_build_error(build_error);
    if (!state.active_model.empty()) {
      index->mutable_active_model()->set_name(state.active_model.name);
      index->mutable_active_model()->set_version(state.active_model.version);
    }
    if (snapshot->encoders[i] != nullptr) {
      index->set_text_encoder_term_count(static_cast<std::int32_t>(
          snapshot->encoders[i]->parts().terms.size()));
    }
  }
}

}  // namespace attendant
