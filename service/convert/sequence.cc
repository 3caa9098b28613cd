#include "service/convert/sequence.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/catalog/query/attend.h"
#include "service/convert/approximation.h"
#include "service/convert/enum.h"
#include "service/convert/time.h"
#include "service/convert/tokens.h"
#include "service/convert/vector.h"
#include "service/convert/wire.h"

namespace attendant {
namespace {

// Builds paths only for errors, since there may be thousands of events.
absl::StatusOr<HistoryEvent> EventFromProto(const v1::HistoryEvent& wire,
                                            bool profile, int index) {
  const auto path = [&](absl::string_view field) {
    return absl::StrCat(profile ? "profile[" : "history[", index, "]", field);
  };
  HistoryEvent event;
  switch (wire.kind_case()) {
    case v1::HistoryEvent::kItemId:
      event.what = wire.item_id();
      break;
    case v1::HistoryEvent::kVector: {
      absl::StatusOr<std::vector<float>> vector =
          VectorFromProto(wire.vector());
      if (!vector.ok()) return PrefixField(vector.status(), path(".vector."));
      event.what = *std::move(vector);
      break;
    }
    case v1::HistoryEvent::KIND_NOT_SET:
      return InvalidField(path(""), "nothing", "item_id or vector");
  }
  if (profile) {
    if (!wire.has_time()) return event;
    return InvalidField(path(".time"), "a time",
                        "nothing: events with a time belong in history");
  }
  if (!wire.has_time()) {
    return InvalidField(
        path(".time"), "nothing",
        "the time of the event; events without a time belong in profile");
  }
  const absl::StatusOr<absl::Time> time = TimeFromProto(wire.time());
  if (!time.ok()) return PrefixField(time.status(), path(".time."));
  event.time = *time;
  return event;
}

absl::Status EventsFromProto(const v1::RankCandidatesRequest& wire,
                             RankQuery& query) {
  // Checked before anything is copied: a message can hold millions of events.
  const std::int64_t event_count =
      std::int64_t{wire.history_size()} + wire.profile_size();
  if (event_count > 0) {
    ATTENDANT_RETURN_IF_ERROR(CheckCount(event_count, 1, kMaxSequenceCount,
                                         "history",
                                         " events, profile included"));
  }
  for (const bool profile : {false, true}) {
    const auto& events = profile ? wire.profile() : wire.history();
    for (int i = 0; i < events.size(); ++i) {
      ATTENDANT_ASSIGN_OR_RETURN(HistoryEvent event,
                                 EventFromProto(events.Get(i), profile, i));
      (profile ? query.profile : query.history).push_back(std::move(event));
    }
  }
  return absl::OkStatus();
}

absl::Status CandidatesFromProto(const v1::Candidates& wire, RankQuery& query) {
  switch (wire.kind_case()) {
    case v1::Candidates::kItems:
      ATTENDANT_RETURN_IF_ERROR(CheckCount(wire.items().ids_size(), 1,
                                           kMaxSequenceCount,
                                           "candidates.items.ids"));
      query.candidates = std::vector<ItemId>(wire.items().ids().begin(),
                                             wire.items().ids().end());
      return absl::OkStatus();
    case v1::Candidates::kQuery: {
      const v1::CandidateQuery& query_wire = wire.query();
      ATTENDANT_RETURN_IF_ERROR(CheckCount(query_wire.deny_list().ids_size(), 0,
                                           kMaxIdListCount,
                                           "candidates.query.deny_list.ids"));
      CandidateQuery asked;
      ATTENDANT_ASSIGN_OR_RETURN(
          asked.vector,
          VectorFromProto(query_wire.vector(), "candidates.query.vector"));
      if (query_wire.has_candidate_count()) {
        asked.candidate_count = query_wire.candidate_count();
      }
      asked.deny_list.assign(query_wire.deny_list().ids().begin(),
                             query_wire.deny_list().ids().end());
      if (query_wire.has_exclude_events()) {
        asked.exclude_events = query_wire.exclude_events();
      }
      query.candidates = std::move(asked);
      return absl::OkStatus();
    }
    case v1::Candidates::KIND_NOT_SET:
      break;
  }
  return InvalidField("candidates", "nothing", "items or query");
}

}  // namespace

absl::Status ContextToProto(const SequenceContext& context,
                            std::int64_t max_bytes,
                            v1::ContextualizeResponse* wire) {
  std::size_t floats = context.outputs.data.size();
  for (const Matrix& weights : context.head_weights) {
    floats += weights.data.size();
  }
  if (static_cast<std::int64_t>(floats * sizeof(float)) > max_bytes) {
    return ReplyTooLarge(max_bytes);
  }
  for (std::int64_t i = 0; i < context.outputs.row_count; ++i) {
    VectorToProto(context.outputs.view().Row(i), wire->add_outputs());
  }
  for (const Matrix& weights : context.head_weights) {
    v1::AttentionMatrix* matrix = wire->add_head_weights();
    matrix->set_row_count(static_cast<std::int32_t>(weights.row_count));
    matrix->set_column_count(static_cast<std::int32_t>(weights.column_count));
    matrix->mutable_weights()->Add(weights.data.begin(), weights.data.end());
  }
  wire->set_scored_count(context.scored_count);
  return absl::OkStatus();
}

absl::StatusOr<RankQuery> RankQueryFromProto(
    const v1::RankCandidatesRequest& wire) {
  RankQuery query;
  query.key_field = wire.key_field();
  ATTENDANT_RETURN_IF_ERROR(CandidatesFromProto(wire.candidates(), query));
  ATTENDANT_RETURN_IF_ERROR(EventsFromProto(wire, query));
  if (wire.has_time()) {
    const absl::StatusOr<absl::Time> time = TimeFromProto(wire.time());
    if (!time.ok()) return PrefixField(time.status(), "time.");
    query.time = *time;
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      query.score_kind,
      OptionalEnumFromProto<ScoreKind>(wire.score_kind(), "score_kind"));
  if (wire.has_temperature()) query.temperature = wire.temperature();
  if (wire.has_result_count()) query.result_count = wire.result_count();
  if (wire.has_approximation()) {
    ATTENDANT_ASSIGN_OR_RETURN(query.approximation,
                               ApproximationFromProto(wire.approximation()));
    // Rows reduced by Linformer do not correspond to events.
    if (wire.approximation().has_linformer()) query.attribution_count = 0;
  }
  if (wire.has_attribution_count()) {
    query.attribution_count = wire.attribution_count();
  }
  ATTENDANT_ASSIGN_OR_RETURN(const auto activation_kind,
                             OptionalEnumFromProto<ActivationKind>(
                                 wire.activation_kind(), "activation_kind"));
  query.activation_kind = activation_kind.value_or(ActivationKind::kSoftmax);
  return query;
}

absl::Status RankAnswerToProto(const RankAnswer& answer,
                               const Snapshot& snapshot, std::int64_t max_bytes,
                               v1::RankCandidatesResponse* wire) {
  std::int64_t bytes = 0;
  for (const RankedItem& item : answer.items) {
    v1::RankedCandidate* candidate = wire->add_candidates();
    const absl::string_view id =
        snapshot.IdOf(item.address.segment, item.address.row);
    candidate->mutable_id()->assign(id.data(), id.size());
    candidate->set_score(item.score);
    candidate->mutable_interest()->Add(item.interest.begin(),
                                       item.interest.end());
    for (const EventAttribution& event : item.events) {
      v1::EventAttribution* attribution = candidate->add_events();
      attribution->set_profile(event.profile);
      attribution->set_index(static_cast<std::int32_t>(event.index));
      attribution->set_weight(event.weight);
    }
    bytes += static_cast<std::int64_t>(candidate->ByteSizeLong());
    if (bytes > max_bytes) return ReplyTooLarge(max_bytes);
  }
  wire->set_future_event_count(
      static_cast<std::int32_t>(answer.future_event_count));
  for (const ItemId& id : answer.unknown_item_ids) {
    wire->add_unknown_item_ids(id);
  }
  wire->set_scored_count(answer.scored_count);
  wire->set_state_token(StateToken(snapshot.catalog_uid, snapshot.sequence));
  return absl::OkStatus();
}

}  // namespace attendant
