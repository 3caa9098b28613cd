#include "service/convert/attend.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/convert/enum.h"
#include "service/convert/time.h"
#include "service/convert/vector.h"

namespace attendant {
namespace {

// Checked before anything is copied: a message can hold millions of empty
// entries.
absl::Status CheckCounts(const v1::AttendRequest& wire) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(wire.heads_size(), 0, kMaxQueryHeadCount, "heads"));
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(wire.biases_size(), 0, kMaxBiasCount, "biases"));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(wire.allow_list().ids_size(), 0,
                                       kMaxIdListCount, "allow_list.ids"));
  return CheckCount(wire.deny_list().ids_size(), 0, kMaxIdListCount,
                    "deny_list.ids");
}

absl::StatusOr<ExamplesQuery> ExamplesFromProto(const v1::Examples& wire,
                                                absl::string_view path) {
  ExamplesQuery query;
  if (wire.examples_size() > kMaxExampleCount) {
    return CheckCount(wire.examples_size(), 1, kMaxExampleCount,
                      absl::StrCat(path, ".examples.examples"));
  }
  query.examples.reserve(static_cast<std::size_t>(wire.examples_size()));
  for (const v1::Example& example : wire.examples()) {
    query.examples.push_back(
        {example.id(), example.has_weight() ? example.weight() : 1.0});
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      query.combine_kind,
      OptionalEnumFromProto<CombineKind>(
          wire.combine_kind(), absl::StrCat(path, ".examples.combine_kind")));
  query.require_all = wire.require_all();
  if (wire.has_exclude_examples()) {
    query.exclude_examples = wire.exclude_examples();
  }
  return query;
}

absl::StatusOr<QueryForm> QueryFromProto(const v1::Query& wire,
                                         absl::string_view path) {
  switch (wire.kind_case()) {
    case v1::Query::kVector: {
      absl::StatusOr<std::vector<float>> vector =
          VectorFromProto(wire.vector());
      if (!vector.ok()) {
        return PrefixField(vector.status(), absl::StrCat(path, ".vector."));
      }
      return QueryForm(*std::move(vector));
    }
    case v1::Query::kExamples: {
      ATTENDANT_ASSIGN_OR_RETURN(ExamplesQuery examples,
                                 ExamplesFromProto(wire.examples(), path));
      return QueryForm(std::move(examples));
    }
    case v1::Query::kText:
      return QueryForm(TextQuery{wire.text()});
    case v1::Query::KIND_NOT_SET:
      break;
  }
  return InvalidField(path, "none", "vector, examples or text");
}

// The request's own query may be omitted if every head has one.
absl::Status QueriesFromProto(const v1::AttendRequest& wire,
                              AttendQuery& query) {
  bool needs_query = wire.heads().empty();
  for (int h = 0; h < wire.heads_size(); ++h) {
    const v1::Head& head = wire.heads(h);
    QueryHead& converted = query.heads.emplace_back();
    converted.key_field = head.key_field();
    if (head.has_temperature()) converted.temperature = head.temperature();
    if (head.has_weight()) converted.weight = head.weight();
    needs_query |= !head.has_query();
    if (!head.has_query()) continue;
    ATTENDANT_ASSIGN_OR_RETURN(
        converted.query,
        QueryFromProto(head.query(), absl::StrCat("heads[", h, "].query")));
  }
  if (!needs_query && !wire.has_query()) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(query.query,
                             QueryFromProto(wire.query(), "query"));
  return absl::OkStatus();
}

absl::Status BiasesFromProto(const v1::AttendRequest& wire,
                             AttendQuery& query) {
  for (int i = 0; i < wire.biases_size(); ++i) {
    const v1::Bias& bias = wire.biases(i);
    BiasTerm& term = query.biases.emplace_back();
    term.attribute = bias.attribute();
    if (bias.has_factor()) term.factor = bias.factor();
    if (bias.has_half_life()) {
      ATTENDANT_ASSIGN_OR_RETURN(
          term.half_life,
          DurationFromProto(bias.half_life(),
                            absl::StrCat("biases[", i, "].half_life")));
    }
  }
  if (!wire.has_time()) return absl::OkStatus();
  const absl::StatusOr<absl::Time> time = TimeFromProto(wire.time());
  if (!time.ok()) return PrefixField(time.status(), "time.");
  query.time = *time;
  return absl::OkStatus();
}

absl::Status ChoicesFromProto(const v1::AttendRequest& wire,
                              AttendQuery& query) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto select_kind,
      OptionalEnumFromProto<SelectKind>(wire.select_kind(), "select_kind"));
  query.select_kind = select_kind.value_or(SelectKind::kSoft);
  ATTENDANT_ASSIGN_OR_RETURN(const auto activation_kind,
                             OptionalEnumFromProto<ActivationKind>(
                                 wire.activation_kind(), "activation_kind"));
  query.activation_kind = activation_kind.value_or(ActivationKind::kSoftmax);
  ATTENDANT_ASSIGN_OR_RETURN(
      query.score_kind,
      OptionalEnumFromProto<ScoreKind>(wire.score_kind(), "score_kind"));
  ATTENDANT_ASSIGN_OR_RETURN(
      query.weight_scope,
      OptionalEnumFromProto<WeightScope>(wire.weight_scope(), "weight_scope"));
  ATTENDANT_ASSIGN_OR_RETURN(
      query.pool_scope,
      OptionalEnumFromProto<WeightScope>(wire.pool_scope(), "pool_scope"));
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto scan_mode,
      OptionalEnumFromProto<ScanMode>(wire.scan_mode(), "scan_mode"));
  query.scan_mode = scan_mode.value_or(ScanMode::kAuto);
  ATTENDANT_ASSIGN_OR_RETURN(
      query.mass_method,
      OptionalEnumFromProto<MassMethod>(wire.mass_method(), "mass_method"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AttendQuery> AttendQueryFromProto(
    const v1::AttendRequest& wire) {
  ATTENDANT_RETURN_IF_ERROR(CheckCounts(wire));
  AttendQuery query;
  ATTENDANT_RETURN_IF_ERROR(QueriesFromProto(wire, query));
  ATTENDANT_RETURN_IF_ERROR(ChoicesFromProto(wire, query));
  ATTENDANT_RETURN_IF_ERROR(BiasesFromProto(wire, query));
  query.key_field = wire.key_field();
  if (wire.has_result_count()) query.result_count = wire.result_count();
  if (wire.has_shortlist_count()) {
    query.shortlist_count = wire.shortlist_count();
  }
  if (wire.has_temperature()) query.temperature = wire.temperature();
  if (wire.has_min_mass()) query.min_mass = wire.min_mass();
  if (wire.has_recall()) query.recall = wire.recall();
  if (wire.has_probe_count()) query.probe_count = wire.probe_count();
  if (wire.has_mass_precision()) query.mass_precision = wire.mass_precision();
  query.with_replacement = wire.with_replacement();
  if (wire.has_seed()) query.seed = wire.seed();
  query.omit_pooled_value = wire.omit_pooled_value();
  query.head_temperatures.assign(wire.head_temperatures().begin(),
                                 wire.head_temperatures().end());
  query.include_head_weights = wire.include_head_weights();
  for (const v1::CrowdingLimit& limit : wire.crowding_limits()) {
    query.crowding_limits.push_back({limit.attribute(), limit.max_count()});
  }
  if (wire.has_allow_list()) {
    query.allow_list.emplace(wire.allow_list().ids().begin(),
                             wire.allow_list().ids().end());
  }
  query.deny_list.assign(wire.deny_list().ids().begin(),
                         wire.deny_list().ids().end());
  return query;
}

}  // namespace attendant
