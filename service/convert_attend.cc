#include "service/convert_attend.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/convert_enum.h"
#include "service/convert_item.h"
#include "service/convert_vector.h"
#include "service/tokens.h"
#include "service/wire.h"

namespace attendant {
namespace {

absl::StatusOr<ExamplesQuery> ExamplesFromProto(const v1::Examples& wire) {
  ExamplesQuery query;
  query.examples.reserve(static_cast<std::size_t>(wire.examples_size()));
  for (const v1::Example& example : wire.examples()) {
    query.examples.push_back(
        {example.id(), example.has_weight() ? example.weight() : 1.0});
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      query.combine_kind,
      OptionalEnumFromProto<CombineKind>(wire.combine_kind(),
                                         "query.examples.combine_kind"));
  query.require_all = wire.require_all();
  if (wire.has_exclude_examples()) {
    query.exclude_examples = wire.exclude_examples();
  }
  return query;
}

absl::Status QueryFromProto(const v1::Query& wire, AttendQuery& query) {
  switch (wire.kind_case()) {
    case v1::Query::kVector: {
      absl::StatusOr<std::vector<float>> vector =
          VectorFromProto(wire.vector());
      if (!vector.ok()) return PrefixField(vector.status(), "query.vector.");
      query.query = *std::move(vector);
      return absl::OkStatus();
    }
    case v1::Query::kExamples: {
      ATTENDANT_ASSIGN_OR_RETURN(query.query,
                                 ExamplesFromProto(wire.examples()));
      return absl::OkStatus();
    }
    case v1::Query::kText:
      query.query = TextQuery{wire.text()};
      return absl::OkStatus();
    case v1::Query::KIND_NOT_SET:
      break;
  }
  return InvalidField("query", "none", "vector, examples or text");
}

void MassToProto(const Mass& mass, v1::Mass* wire) {
  wire->set_method(EnumToProto<v1::MassMethod>(mass.method));
  if (mass.method == MassMethod::kUnknown) return;
  wire->set_value(mass.value);
  wire->set_lower_bound(mass.lower_bound);
  wire->set_upper_bound(mass.upper_bound);
}

absl::Status ItemsToProto(const AttendAnswer& answer, const Snapshot& snapshot,
                          const ReadMask& mask, std::int64_t max_bytes,
                          v1::AttendResponse* wire) {
  std::int64_t bytes = 0;
  const CatalogSchema& schema = *snapshot.schema;
  wire->mutable_items()->Reserve(static_cast<int>(answer.items.size()));
  for (const AttendedItem& attended : answer.items) {
    const RowAddress address = attended.address;
    v1::AttendedItem* item = wire->add_items();
    const absl::string_view id = snapshot.IdOf(address.segment, address.row);
    item->set_id(id.data(), id.size());
    item->set_weight(attended.weight);
    item->set_logit(attended.logit);
    item->set_similarity(attended.similarity);
    if (!mask.any_attributes && !mask.keys && !mask.value &&
        !mask.opaque_value) {
      continue;
    }
    const Segment& segment =
        *snapshot.segments[static_cast<std::size_t>(address.segment)].segment;
    AttributesToProto(segment.rows->AttributesOf(address.row), schema, mask,
                      item->mutable_attributes());
    if (mask.keys) {
      for (std::size_t i = 0; i < schema.key_fields.size(); ++i) {
        const std::span<const float> key = segment.indexes[i]->Key(address.row);
        if (key.empty()) continue;
        VectorToProto(key, &(*item->mutable_keys())[schema.key_fields[i].name]);
      }
    }
    const float* value =
        mask.value ? segment.rows->ValueOf(address.row) : nullptr;
    if (value != nullptr) {
      VectorToProto({value, static_cast<std::size_t>(schema.value_dim)},
                    item->mutable_value());
    }
    if (mask.opaque_value) {
      const auto& opaque_value = segment.rows->OpaqueValueOf(address.row);
      if (opaque_value != nullptr) item->set_opaque_value(*opaque_value);
    }
    bytes += static_cast<std::int64_t>(item->ByteSizeLong());
    if (bytes > max_bytes) return ReplyTooLarge(max_bytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AttendQuery> AttendQueryFromProto(
    const v1::AttendRequest& wire) {
  AttendQuery query;
  ATTENDANT_RETURN_IF_ERROR(QueryFromProto(wire.query(), query));
  query.key_field = wire.key_field();
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto select_kind,
      OptionalEnumFromProto<SelectKind>(wire.select_kind(), "select_kind"));
  query.select_kind = select_kind.value_or(SelectKind::kSoft);
  if (wire.has_result_count()) query.result_count = wire.result_count();
  if (wire.has_shortlist_count()) {
    query.shortlist_count = wire.shortlist_count();
  }
  if (wire.has_temperature()) query.temperature = wire.temperature();
  ATTENDANT_ASSIGN_OR_RETURN(
      query.score_kind,
      OptionalEnumFromProto<ScoreKind>(wire.score_kind(), "score_kind"));
  ATTENDANT_ASSIGN_OR_RETURN(
      query.weight_scope,
      OptionalEnumFromProto<WeightScope>(wire.weight_scope(), "weight_scope"));
  ATTENDANT_ASSIGN_OR_RETURN(
      query.pool_scope,
      OptionalEnumFromProto<WeightScope>(wire.pool_scope(), "pool_scope"));
  query.omit_pooled_value = wire.omit_pooled_value();
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto scan_mode,
      OptionalEnumFromProto<ScanMode>(wire.scan_mode(), "scan_mode"));
  query.scan_mode = scan_mode.value_or(ScanMode::kAuto);
  if (wire.has_allow_list()) {
    query.allow_list.emplace(wire.allow_list().ids().begin(),
                             wire.allow_list().ids().end());
  }
  query.deny_list.assign(wire.deny_list().ids().begin(),
                         wire.deny_list().ids().end());
  return query;
}

absl::Status AttendAnswerToProto(const AttendAnswer& answer,
                                 const Snapshot& snapshot, const ReadMask& mask,
                                 std::int64_t max_bytes,
                                 v1::AttendResponse* wire) {
  ATTENDANT_RETURN_IF_ERROR(
      ItemsToProto(answer, snapshot, mask, max_bytes, wire));
  if (answer.pooled_value.has_value()) {
    v1::PooledValue* pooled = wire->mutable_pooled_value();
    pooled->mutable_values()->Add(answer.pooled_value->values.begin(),
                                  answer.pooled_value->values.end());
    pooled->set_scope(EnumToProto<v1::WeightScope>(answer.pooled_value->scope));
    pooled->set_key_as_value_count(answer.pooled_value->key_as_value_count);
  }
  wire->set_weight_scope(EnumToProto<v1::WeightScope>(answer.weight_scope));
  MassToProto(answer.returned_mass, wire->mutable_returned_mass());
  MassToProto(answer.shortlist_mass, wire->mutable_shortlist_mass());
  if (answer.log_partition.has_value()) {
    wire->set_log_partition(*answer.log_partition);
  }
  if (answer.entropy.has_value()) wire->set_entropy(*answer.entropy);
  if (answer.effective_item_count.has_value()) {
    wire->set_effective_item_count(*answer.effective_item_count);
  }
  for (const ItemId& id : answer.unknown_example_ids) {
    wire->add_unknown_example_ids(id);
  }
  wire->set_temperature(answer.temperature);
  wire->set_score_kind(EnumToProto<v1::ScoreKind>(answer.score_kind));
  const auto field = static_cast<std::size_t>(answer.key_field);
  wire->set_key_field(snapshot.schema->key_fields[field].name);
  wire->set_snapshot_token(
      SnapshotToken(snapshot.catalog_uid, snapshot.sequence));
  v1::AttendStats* stats = wire->mutable_stats();
  stats->set_scored_count(answer.scored_count);
  stats->set_eligible_count(answer.eligible_count);
  stats->set_item_count(snapshot.item_count());
  stats->set_complete(answer.complete);
  stats->set_index_kind(EnumToProto<v1::IndexKind>(answer.index_kind));
  return absl::OkStatus();
}

}  // namespace attendant
