#include "service/convert/answer.h"

#include <algorithm>
#include <string>

#include "core/base/status.h"
#include "service/convert/enum.h"
#include "service/convert/item.h"
#include "service/convert/time.h"
#include "service/convert/tokens.h"
#include "service/convert/vector.h"
#include "service/convert/wire.h"

namespace attendant {
namespace {

// Kept small since items may include keys and values.
constexpr int kItemsBetweenChecks = 256;

void MassToProto(const Mass& mass, v1::Mass* wire) {
  wire->set_method(EnumToProto<v1::MassMethod>(mass.method));
  if (mass.method == MassMethod::kUnknown) return;
  wire->set_value(mass.value);
  wire->set_lower_bound(mass.lower_bound);
  wire->set_upper_bound(mass.upper_bound);
}

void IntervalToProto(const Interval& interval, v1::Interval* wire) {
  wire->set_method(EnumToProto<v1::MassMethod>(interval.method));
  wire->set_lower_bound(interval.lower_bound);
  wire->set_upper_bound(interval.upper_bound);
}

// Writes to the message of an answer or of a head.
template <typename Wire>
void AttentionToProto(const AttentionAnswer& attention, Wire* wire) {
  if (attention.log_partition) {
    wire->set_log_partition(*attention.log_partition);
  }
  if (attention.log_partition_interval) {
    IntervalToProto(*attention.log_partition_interval,
                    wire->mutable_log_partition_interval());
  }
  if (attention.entropy) wire->set_entropy(*attention.entropy);
  if (attention.entropy_interval) {
    IntervalToProto(*attention.entropy_interval,
                    wire->mutable_entropy_interval());
  }
  if (attention.effective_item_count) {
    wire->set_effective_item_count(*attention.effective_item_count);
  }
  if (attention.effective_item_count_interval) {
    IntervalToProto(*attention.effective_item_count_interval,
                    wire->mutable_effective_item_count_interval());
  }
  MassToProto(attention.returned_mass, wire->mutable_returned_mass());
  MassToProto(attention.shortlist_mass, wire->mutable_shortlist_mass());
}

const std::string& KeyFieldOf(const AttendAnswer& answer, int head,
                              const Snapshot& snapshot) {
  const auto field = static_cast<std::size_t>(answer.heads[head].key_field);
  return snapshot.schema->key_fields[field].name;
}

// True if `field` equals `value` in all heads; there may be none.
template <typename T>
bool AllHeads(const AttendAnswer& answer, T HeadAnswer::*field,
              const T& value) {
  return std::ranges::all_of(answer.heads, [&](const HeadAnswer& head) {
    return head.*field == value;
  });
}

void HeadsToProto(const AttendAnswer& answer, const Snapshot& snapshot,
                  v1::AttendResponse* wire) {
  for (std::size_t h = 0; h < answer.heads.size(); ++h) {
    const HeadAnswer& head = answer.heads[h];
    v1::HeadAttention* attention = wire->add_heads();
    attention->set_key_field(KeyFieldOf(answer, static_cast<int>(h), snapshot));
    attention->set_temperature(head.temperature);
    attention->set_share(head.share);
    attention->set_score_kind(EnumToProto<v1::ScoreKind>(head.score_kind));
    AttentionToProto(head, attention);
    attention->mutable_output()->Add(head.output.begin(), head.output.end());
  }
  wire->mutable_model_output()->Add(answer.model_output.begin(),
                                    answer.model_output.end());
  if (!answer.model.empty()) {
    wire->mutable_model()->set_name(answer.model.name);
    wire->mutable_model()->set_version(answer.model.version);
  }
}

// Returns a lower bound on the size of the items, from their ids and numbers.
std::int64_t LeastBytes(const AttendAnswer& answer, const Snapshot& snapshot) {
  constexpr std::size_t kFrameBytes = 4;  // framing of an item and its id
  std::size_t bytes = 0;
  for (const AttendedItem& item : answer.items) {
    const RowAddress address = item.address;
    bytes += kFrameBytes + snapshot.IdOf(address.segment, address.row).size() +
             // Zeros are not serialised.
             (item.weight != 0 ? 1 + sizeof(item.weight) : 0) +
             (item.logit != 0 ? 1 + sizeof(item.logit) : 0) +
             (item.similarity != 0 ? 1 + sizeof(item.similarity) : 0) +
             sizeof(double) * item.head_weights.size();
  }
  return static_cast<std::int64_t>(bytes);
}

absl::Status ItemsToProto(const AttendAnswer& answer, const Snapshot& snapshot,
                          const ReadMask& mask, std::int64_t max_bytes,
                          const Interrupt& interrupt,
                          v1::AttendResponse* wire) {
  ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
  // Checked first, since many answers of a batch may be built when no room is
  // left.
  if (LeastBytes(answer, snapshot) > max_bytes) return ReplyTooLarge(max_bytes);
  std::int64_t bytes = 0;
  const CatalogSchema& schema = *snapshot.schema;
  wire->mutable_items()->Reserve(static_cast<int>(answer.items.size()));
  for (const AttendedItem& attended : answer.items) {
    if (wire->items_size() % kItemsBetweenChecks == 0) {
      ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    }
    const RowAddress address = attended.address;
    v1::AttendedItem* item = wire->add_items();
    const absl::string_view id = snapshot.IdOf(address.segment, address.row);
    // set_id would create a temporary string.
    item->mutable_id()->assign(id.data(), id.size());
    item->set_weight(attended.weight);
    item->set_logit(attended.logit);
    item->set_similarity(attended.similarity);
    if (attended.log_weight) item->set_log_weight(*attended.log_weight);
    if (attended.log_inclusion_given_threshold) {
      item->set_log_inclusion_given_threshold(
          *attended.log_inclusion_given_threshold);
    }
    if (!answer.heads.empty()) {
      item->set_head(attended.head);
      item->set_key_field(KeyFieldOf(answer, attended.head, snapshot));
    }
    item->mutable_head_weights()->Add(attended.head_weights.begin(),
                                      attended.head_weights.end());
    if (!mask.any_attributes && mask.keys.none() && !mask.value &&
        !mask.opaque_value) {
      continue;
    }
    const Segment& segment = *snapshot.segments[address.segment].segment;
    if (mask.any_attributes) {
      AttributesToProto(
          segment.rows->AttributesOf(address.row, &mask.attributes), schema,
          mask, item->mutable_attributes());
    }
    if (mask.keys.any()) {
      for (std::size_t i = 0; i < schema.key_fields.size(); ++i) {
        if (!mask.keys[i]) continue;
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

absl::Status AttendAnswerToProto(const AttendAnswer& answer,
                                 const Snapshot& snapshot, const ReadMask& mask,
                                 std::int64_t max_bytes,
                                 const Interrupt& interrupt,
                                 v1::AttendResponse* wire) {
  ATTENDANT_RETURN_IF_ERROR(
      ItemsToProto(answer, snapshot, mask, max_bytes, interrupt, wire));
  if (answer.pooled_value.has_value()) {
    v1::PooledValue* pooled = wire->mutable_pooled_value();
    pooled->mutable_values()->Add(answer.pooled_value->values.begin(),
                                  answer.pooled_value->values.end());
    pooled->set_scope(EnumToProto<v1::WeightScope>(answer.pooled_value->scope));
    pooled->set_key_as_value_count(answer.pooled_value->key_as_value_count);
    pooled->set_method(
        EnumToProto<v1::MassMethod>(answer.pooled_value->method));
    pooled->set_relative_error(answer.pooled_value->relative_error);
  }
  // Weights of other activations do not sum to 1.
  if (answer.activation_kind == ActivationKind::kSoftmax) {
    wire->set_weight_scope(EnumToProto<v1::WeightScope>(answer.weight_scope));
  }
  AttentionToProto(answer, wire);
  wire->set_results_exact(answer.results_exact);
  for (const ItemId& id : answer.unknown_example_ids) {
    wire->add_unknown_example_ids(id);
  }
  HeadsToProto(answer, snapshot, wire);
  wire->set_limit_reason(EnumToProto<v1::LimitReason>(answer.limit_reason));
  if (answer.slate) {
    v1::Slate* slate = wire->mutable_slate();
    slate->set_seed(answer.slate->seed);
    slate->set_log_probability(answer.slate->log_probability);
    if (answer.slate->kappa) slate->set_kappa(*answer.slate->kappa);
    slate->set_sequence(snapshot.sequence);
    slate->set_scope(EnumToProto<v1::WeightScope>(answer.slate->scope));
    slate->set_distance(answer.slate->distance);
  }
  if (answer.time) TimeToProto(*answer.time, wire->mutable_time());
  wire->set_activation_kind(
      EnumToProto<v1::ActivationKind>(answer.activation_kind));
  if (AllHeads(answer, &HeadAnswer::temperature, answer.temperature)) {
    wire->set_temperature(answer.temperature);
  }
  if (AllHeads(answer, &HeadAnswer::score_kind, answer.score_kind)) {
    wire->set_score_kind(EnumToProto<v1::ScoreKind>(answer.score_kind));
  }
  if (AllHeads(answer, &HeadAnswer::key_field, answer.key_field)) {
    const auto field = static_cast<std::size_t>(answer.key_field);
    wire->set_key_field(snapshot.schema->key_fields[field].name);
  }
  wire->set_state_token(StateToken(snapshot.catalog_uid, snapshot.sequence));
  v1::AttendStats* stats = wire->mutable_stats();
  stats->set_scored_count(answer.scored_count);
  stats->set_eligible_count(answer.eligible_count);
  stats->set_item_count(snapshot.item_count());
  stats->set_complete(answer.complete);
  stats->set_projected_key_count(answer.projected_key_count);
  stats->set_projected_query_count(answer.projected_query_count);
  stats->set_visited_list_count(answer.visited_list_count);
  stats->set_shared_query_count(answer.shared_query_count);
  stats->set_index_kind(EnumToProto<v1::IndexKind>(answer.index_kind));
  return absl::OkStatus();
}

}  // namespace attendant
