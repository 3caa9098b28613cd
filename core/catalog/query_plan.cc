#include "core/catalog/query_plan.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

absl::StatusOr<int> ChooseField(const Snapshot& snapshot,
                                const AttendQuery& query) {
  const CatalogSchema& schema = *snapshot.schema;
  if (!query.key_field.empty()) {
    const int field = schema.KeyFieldIndex(query.key_field);
    if (field >= 0) return field;
    std::string names;
    for (const KeyFieldSchema& known : schema.key_fields) {
      absl::StrAppend(&names, names.empty() ? "" : ", ", known.name);
    }
    return InvalidField("key_field", query.key_field,
                        absl::StrCat("one of ", names));
  }
  if (!std::holds_alternative<TextQuery>(query.query)) return 0;
  for (std::size_t i = 0; i < snapshot.encoders.size(); ++i) {
    if (snapshot.encoders[i] != nullptr) return static_cast<int>(i);
  }
  return InvalidField("query.text", "text",
                      "a vector or examples: no key field of this catalog has "
                      "a text encoder");
}

// Scales to norm 1, by the greatest component first; zeros stay.
void ScaleToUnit(std::vector<double>& vector) {
  double greatest = 0;
  for (const double component : vector) {
    greatest = std::max(greatest, std::abs(component));
  }
  if (greatest == 0) return;
  double square_sum = 0;
  for (double& component : vector) {
    component /= greatest;
    square_sum += component * component;
  }
  const double norm = std::sqrt(square_sum);
  for (double& component : vector) component /= norm;
}

absl::StatusOr<std::vector<float>> VectorOfExamples(
    const Snapshot& snapshot, const ExamplesQuery& query, QueryPlan& plan,
    std::vector<RowAddress>& rows) {
  const KeyFieldSchema& field = snapshot.schema->key_fields[plan.field];
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(static_cast<std::int64_t>(query.examples.size()), 1,
                 kMaxExampleCount, "query.examples.examples"));
  std::vector<double> sum(field.dim);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < query.examples.size(); ++i) {
    const Example& example = query.examples[i];
    const auto path = [i](absl::string_view part) {
      return absl::StrCat("query.examples.examples[", i, "].", part);
    };
    ATTENDANT_RETURN_IF_ERROR(ValidateItemId(example.id, path("id")));
    if (!std::isfinite(example.weight)) {
      return InvalidField(path("weight"), absl::StrCat(example.weight),
                          "a finite number");
    }
    const std::optional<RowAddress> address = snapshot.Find(example.id);
    std::span<const float> key;
    if (address) {
      rows.push_back(*address);
      key = snapshot.KeyOf(*address, plan.field);
    }
    if (key.empty()) {
      if (query.require_all) {
        return StatusWithReason(
            absl::StatusCode::kNotFound,
            absl::StrCat(path("id"), ": no item '", example.id,
                         "' with a key in '", field.name, "'"),
            "EXAMPLE_NOT_FOUND");
      }
      plan.unknown_example_ids.push_back(example.id);
      continue;
    }
    for (std::size_t d = 0; d < key.size(); ++d) {
      sum[d] += example.weight * key[d];
    }
    ++count;
  }
  if (count == 0) {
    return StatusWithReason(
        absl::StatusCode::kNotFound,
        absl::StrCat("query.examples: none of the ", query.examples.size(),
                     " examples is an item with a key in '", field.name, "'"),
        "EXAMPLE_NOT_FOUND");
  }
  const CombineKind combine = query.combine_kind.value_or(field.combine_kind);
  // In doubles, where no sum of floats is too small or large to be scaled.
  if (combine == CombineKind::kUnit) ScaleToUnit(sum);
  std::vector<float> vector(sum.begin(), sum.end());
  ATTENDANT_RETURN_IF_ERROR(ValidateFinite(vector, "query.examples"));
  Combine(combine, count, vector);
  return vector;
}

absl::StatusOr<std::vector<float>> ResolveVector(
    const Snapshot& snapshot, const AttendQuery& query, QueryPlan& plan,
    std::vector<RowAddress>& example_rows) {
  const KeyFieldSchema& field = snapshot.schema->key_fields[plan.field];
  if (const auto* vector = std::get_if<std::vector<float>>(&query.query)) {
    if (static_cast<std::int64_t>(vector->size()) != field.dim) {
      return InvalidField(
          "query.vector", absl::StrCat(vector->size(), " components"),
          absl::StrCat(field.dim, ", the dimension of '", field.name, "'"));
    }
    ATTENDANT_RETURN_IF_ERROR(ValidateFinite(*vector, "query.vector"));
    return *vector;
  }
  if (const auto* examples = std::get_if<ExamplesQuery>(&query.query)) {
    return VectorOfExamples(snapshot, *examples, plan, example_rows);
  }
  const TextEncoder* encoder = snapshot.encoders[plan.field].get();
  if (encoder == nullptr) {
    return InvalidField("query.text", "text",
                        absl::StrCat("a vector or examples: key field '",
                                     field.name, "' has no text encoder"));
  }
  return encoder->Encode(std::get<TextQuery>(query.query).text);
}

absl::Status NormaliseForCosine(std::vector<float>& vector) {
  const double norm = Norm(vector);
  if (norm == 0) {
    return InvalidField("query", "a query of norm 0",
                        "a norm above 0 for COSINE");
  }
  for (float& component : vector) {
    component = static_cast<float>(component / norm);
  }
  return absl::OkStatus();
}

bool RanksAlike(ScoreKind a, ScoreKind b) {
  return (a == ScoreKind::kCosine) == (b == ScoreKind::kCosine);
}

absl::Status ResolveSizes(const AttendQuery& query, QueryPlan& plan) {
  plan.select_kind = query.select_kind;
  const bool hard = query.select_kind == SelectKind::kHard;
  plan.result_count = query.result_count.value_or(hard ? 1 : 10);
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(plan.result_count, 1, kMaxResultCount, "result_count"));
  if (hard && plan.result_count != 1) {
    return InvalidField("result_count", absl::StrCat(plan.result_count),
                        "1 with select_kind HARD");
  }
  plan.shortlist_count = query.shortlist_count.value_or(
      std::max<std::int64_t>(10 * plan.result_count, 100));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(plan.shortlist_count, 1,
                                       kMaxShortlistCount, "shortlist_count"));
  if (plan.shortlist_count < plan.result_count) {
    return InvalidField(
        "shortlist_count", absl::StrCat(plan.shortlist_count),
        absl::StrCat("at least result_count, which is ", plan.result_count));
  }
  return absl::OkStatus();
}

absl::Status ResolveScopes(const AttendQuery& query, QueryPlan& plan) {
  WeightScope default_scope = WeightScope::kShortlist;
  if (plan.select_kind == SelectKind::kHard) {
    default_scope = WeightScope::kReturned;
    const auto refused = [](std::optional<WeightScope> scope) {
      return scope.has_value() && *scope != WeightScope::kReturned;
    };
    if (refused(query.weight_scope) || refused(query.pool_scope)) {
      return InvalidField(
          refused(query.weight_scope) ? "weight_scope" : "pool_scope",
          "another scope than RETURNED",
          "RETURNED or nothing with select_kind HARD, whose one weight is 1");
    }
  }
  plan.weight_scope = query.weight_scope.value_or(default_scope);
  if (!query.omit_pooled_value) {
    plan.pool_scope = query.pool_scope.value_or(plan.weight_scope);
  }
  return absl::OkStatus();
}

absl::Status ValidateIds(const std::vector<ItemId>& ids,
                         absl::string_view field) {
  ATTENDANT_RETURN_IF_ERROR(CheckCount(static_cast<std::int64_t>(ids.size()), 0,
                                       kMaxIdListCount, field));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const absl::Status status = ValidateItemId(ids[i], "");
    if (!status.ok())
      return PrefixField(status, absl::StrCat(field, "[", i, "]"));
  }
  return absl::OkStatus();
}

// Chooses between the index and every key, or says why it can't.
absl::Status ResolveScan(const Snapshot& snapshot, const AttendQuery& query,
                         QueryPlan& plan) {
  const KeyFieldSchema& field = snapshot.schema->key_fields[plan.field];
  absl::string_view reason;
  if (plan.weight_scope == WeightScope::kCatalog) {
    reason = "weight_scope CATALOG needs every key";
  } else if (plan.pool_scope == WeightScope::kCatalog) {
    reason = "pool_scope CATALOG needs every key";
  } else if (!RanksAlike(plan.score_kind, field.score_kind)) {
    reason = "score_kind ranks otherwise than the index";
  } else if (query.allow_list.has_value()) {
    reason = "allow_list is scored exactly";
  }
  plan.exhaustive = query.scan_mode == ScanMode::kExact || !reason.empty();
  if (query.scan_mode != ScanMode::kIndex) return absl::OkStatus();
  if (reason.empty() &&
      snapshot.wanted_indexes[plan.field] == IndexKind::kIvf) {
    const bool trained = std::any_of(
        snapshot.segments.begin(), snapshot.segments.end(),
        [&](const SegmentView& view) {
          return view.segment->indexes[plan.field]->kind() == IndexKind::kIvf;
        });
    if (!trained) reason = "the index is not trained yet";
  }
  if (reason.empty()) return absl::OkStatus();
  return StatusWithReason(absl::StatusCode::kFailedPrecondition,
                          absl::StrCat("scan_mode INDEX can't answer: ", reason,
                                       "; use AUTO or EXACT"),
                          "INDEX_CANNOT_ANSWER");
}

}  // namespace

absl::StatusOr<QueryPlan> PlanQuery(const Snapshot& snapshot,
                                    const AttendQuery& query,
                                    const Interrupt& interrupt) {
  QueryPlan plan;
  ATTENDANT_ASSIGN_OR_RETURN(plan.field, ChooseField(snapshot, query));
  const KeyFieldSchema& field = snapshot.schema->key_fields[plan.field];
  plan.score_kind = query.score_kind.value_or(field.score_kind);
  if (plan.score_kind == ScoreKind::kBilinear ||
      plan.score_kind == ScoreKind::kAdditive) {
    return InvalidField("score_kind", Name(plan.score_kind),
                        "DOT, SCALED_DOT or COSINE without a model");
  }
  plan.temperature = query.temperature.value_or(field.temperature);
  ATTENDANT_RETURN_IF_ERROR(
      ValidateTemperature(plan.temperature, "temperature"));
  plan.logit_factor = LogitFactor(plan.score_kind, field.dim, plan.temperature);
  ATTENDANT_RETURN_IF_ERROR(ResolveSizes(query, plan));
  ATTENDANT_RETURN_IF_ERROR(ResolveScopes(query, plan));
  if (query.allow_list) {
    ATTENDANT_RETURN_IF_ERROR(ValidateIds(*query.allow_list, "allow_list.ids"));
  }
  ATTENDANT_RETURN_IF_ERROR(ValidateIds(query.deny_list, "deny_list.ids"));
  ATTENDANT_RETURN_IF_ERROR(ResolveScan(snapshot, query, plan));

  std::vector<RowAddress> example_rows;
  ATTENDANT_ASSIGN_OR_RETURN(
      plan.vector, ResolveVector(snapshot, query, plan, example_rows));
  if (plan.score_kind == ScoreKind::kCosine) {
    ATTENDANT_RETURN_IF_ERROR(NormaliseForCosine(plan.vector));
  }

  Masks masks(snapshot);
  if (query.allow_list) masks.AllowOnly(*query.allow_list);
  masks.Exclude(query.deny_list);
  if (query.filter) {
    ATTENDANT_RETURN_IF_ERROR(masks.Keep(*query.filter, interrupt));
  }
  const auto* examples = std::get_if<ExamplesQuery>(&query.query);
  if (examples != nullptr && examples->exclude_examples) {
    for (const RowAddress& address : example_rows) masks.Exclude(address);
  }
  plan.eligible_count = masks.EligibleCount(plan.field);
  plan.masks = std::move(masks);
  return plan;
}

}  // namespace attendant
