#include "core/catalog/query/query_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/number_text.h"
#include "core/base/status.h"
#include "core/catalog/query/by_head.h"
#include "core/catalog/query/query_vector.h"
#include "core/catalog/segments/item_keys.h"

namespace attendant {
namespace {

absl::StatusOr<int> ChooseField(const Snapshot& snapshot,
                                const AttendQuery& query) {
  if (!query.key_field.empty()) {
    return KeyFieldNamed(*snapshot.schema, query.key_field, "key_field");
  }
  if (!std::holds_alternative<TextQuery>(query.query)) return 0;
  for (std::size_t i = 0; i < snapshot.encoders.size(); ++i) {
    if (snapshot.encoders[i] != nullptr) return static_cast<int>(i);
  }
  return InvalidField("query.text", "text",
                      "a vector or examples: no key field of this catalog has "
                      "a text encoder");
}

bool RanksAlike(ScoreKind a, ScoreKind b) {
  return (a == ScoreKind::kCosine) == (b == ScoreKind::kCosine) &&
         (a == ScoreKind::kAdditive) == (b == ScoreKind::kAdditive);
}

absl::string_view NameOf(WeightScope scope) {
  switch (scope) {
    case WeightScope::kShortlist:
      return "SHORTLIST";
    case WeightScope::kReturned:
      return "RETURNED";
    case WeightScope::kCatalog:
      return "CATALOG";
  }
  return "";
}

absl::string_view NameOf(MassMethod method) {
  switch (method) {
    case MassMethod::kExact:
      return "EXACT";
    case MassMethod::kBound:
      return "BOUND";
    case MassMethod::kEstimate:
      return "ESTIMATE";
    case MassMethod::kUnknown:
      return "UNKNOWN";
  }
  return "";
}

// Refuses the choices that SIGMOID and NONE do not have.
absl::Status CheckNeedsNoSoftmax(const AttendQuery& query) {
  constexpr char kNothing[] =
      "nothing with activation_kind SIGMOID or NONE, whose weights are each "
      "their own";
  if (query.mass_method) {
    return InvalidField("mass_method", NameOf(*query.mass_method), kNothing);
  }
  if (query.mass_precision) {
    return InvalidField("mass_precision", NumberText(*query.mass_precision),
                        kNothing);
  }
  if (query.weight_scope) {
    return InvalidField("weight_scope", NameOf(*query.weight_scope), kNothing);
  }
  if (query.pool_scope) {
    return InvalidField("pool_scope", NameOf(*query.pool_scope), kNothing);
  }
  if (query.min_mass) {
    return InvalidField("min_mass", NumberText(*query.min_mass), kNothing);
  }
  if (query.select_kind != SelectKind::kSoft) {
    return InvalidField(
        "select_kind",
        query.select_kind == SelectKind::kHard ? "HARD" : "SAMPLE", kNothing);
  }
  return absl::OkStatus();
}

// Refuses choices that exclude each other, and choices that SAMPLE, HARD and
// activations other than SOFTMAX do not have.
absl::Status CheckChoices(const AttendQuery& query) {
  const bool soft = query.select_kind == SelectKind::kSoft;
  const bool sample = query.select_kind == SelectKind::kSample;
  if (query.activation_kind != ActivationKind::kSoftmax) {
    ATTENDANT_RETURN_IF_ERROR(CheckNeedsNoSoftmax(query));
  }
  if (query.omit_pooled_value && query.pool_scope) {
    return InvalidField("pool_scope", NameOf(*query.pool_scope),
                        "nothing with omit_pooled_value");
  }
  if (query.min_mass) {
    if (!(*query.min_mass > 0 && *query.min_mass <= 1)) {
      return InvalidField("min_mass", NumberText(*query.min_mass),
                          "a number in (0, 1]");
    }
    if (!soft) {
      return InvalidField("min_mass", NumberText(*query.min_mass),
                          "nothing with select_kind HARD or SAMPLE");
    }
  }
  // If some draws were not kept, the others would not have the probabilities
  // that the answer states.
  if (!query.crowding_limits.empty() && !soft) {
    return InvalidField("crowding_limits",
                        absl::StrCat(query.crowding_limits.size()),
                        "nothing with select_kind HARD or SAMPLE");
  }
  constexpr char kOnlyOfSample[] = "nothing without select_kind SAMPLE";
  if (!sample && query.seed) {
    return InvalidField("seed", absl::StrCat(*query.seed), kOnlyOfSample);
  }
  if (!sample && query.with_replacement) {
    return InvalidField("with_replacement", "true", kOnlyOfSample);
  }
  if (sample && query.weight_scope == WeightScope::kReturned) {
    return InvalidField("weight_scope", "RETURNED",
                        "CATALOG or SHORTLIST with select_kind SAMPLE, which "
                        "draws from it");
  }
  if (query.time && query.biases.empty()) {
    return InvalidField("time", absl::FormatTime(*query.time),
                        "nothing without biases");
  }
  return absl::OkStatus();
}

// Checks how far to look and what to know of the mass, as far as the request
// says.
absl::Status CheckGoals(const AttendQuery& query) {
  if (query.recall && !(*query.recall > 0 && *query.recall <= 1)) {
    return InvalidField("recall", NumberText(*query.recall),
                        "a number in (0, 1]");
  }
  if (query.probe_count) {
    if (*query.probe_count < 1) {
      return InvalidField("probe_count", absl::StrCat(*query.probe_count),
                          "1 or more");
    }
    absl::string_view want;
    if (query.recall) want = "nothing beside recall, which it stands for";
    if (query.allow_list) want = "nothing with allow_list, which is all scored";
    if (query.scan_mode == ScanMode::kExact) {
      want = "nothing with scan_mode EXACT, which scores all";
    }
    if (!want.empty()) {
      return InvalidField("probe_count", absl::StrCat(*query.probe_count),
                          want);
    }
  }
  if (query.mass_precision &&
      !(std::isfinite(*query.mass_precision) && *query.mass_precision > 0)) {
    return InvalidField("mass_precision", NumberText(*query.mass_precision),
                        "a finite number above 0");
  }
  if (query.mass_method == MassMethod::kUnknown) {
    return InvalidField("mass_method", "UNKNOWN", "EXACT, BOUND or ESTIMATE");
  }
  return absl::OkStatus();
}

absl::Status ResolveSizes(const AttendQuery& query, QueryPlan& plan) {
  plan.select_kind = query.select_kind;
  plan.activation_kind = query.activation_kind;
  plan.min_mass = query.min_mass;
  plan.with_replacement = query.with_replacement;
  plan.include_head_weights = query.include_head_weights;
  plan.names_heads = !query.heads.empty();
  const bool hard = query.select_kind == SelectKind::kHard;
  const bool has_min_mass = query.min_mass.has_value();
  plan.result_count = query.result_count.value_or(
      DefaultResultCount(query.select_kind, has_min_mass));
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(plan.result_count, 1, kMaxResultCount, "result_count"));
  if (hard && plan.result_count != 1) {
    return InvalidField("result_count", absl::StrCat(plan.result_count),
                        "1 with select_kind HARD");
  }
  plan.shortlist_count = query.shortlist_count.value_or(
      DefaultShortlistCount(plan.result_count, has_min_mass));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(plan.shortlist_count, 1,
                                       kMaxShortlistCount, "shortlist_count"));
  if (plan.shortlist_count < plan.result_count) {
    return InvalidField(
        "shortlist_count", absl::StrCat(plan.shortlist_count),
        absl::StrCat("at least result_count, which is ", plan.result_count));
  }
  if (query.seed) {
    plan.seed = *query.seed;
  } else if (query.select_kind == SelectKind::kSample) {
    // Not negative, since people copy it. With fewer bits, thousands of queries
    // would repeat each other's noise.
    std::random_device device;
    plan.seed = std::uniform_int_distribution<std::int64_t>(0)(device);
  }
  return absl::OkStatus();
}

absl::Status ResolveScopes(const AttendQuery& query, QueryPlan& plan) {
  WeightScope default_scope = WeightScope::kShortlist;
  if (plan.select_kind == SelectKind::kSample) {
    default_scope = WeightScope::kCatalog;
  }
  // Weights that are independent of each other are pooled over the returned
  // items.
  if (plan.activation_kind != ActivationKind::kSoftmax) {
    default_scope = WeightScope::kReturned;
  }
  if (plan.select_kind == SelectKind::kHard) {
    default_scope = WeightScope::kReturned;
    const auto refused = [](std::optional<WeightScope> scope) {
      return scope.has_value() && *scope != WeightScope::kReturned;
    };
    constexpr char kReturned[] =
        "RETURNED or nothing with select_kind HARD, whose one weight is 1";
    if (refused(query.weight_scope)) {
      return InvalidField("weight_scope", NameOf(*query.weight_scope),
                          kReturned);
    }
    if (refused(query.pool_scope)) {
      return InvalidField("pool_scope", NameOf(*query.pool_scope), kReturned);
    }
  }
  plan.weight_scope = query.weight_scope.value_or(default_scope);
  if (!query.omit_pooled_value) {
    // By default draws do not pay for values of items that were not drawn.
    plan.pool_scope = query.pool_scope.value_or(
        plan.select_kind == SelectKind::kSample ? WeightScope::kReturned
                                                : plan.weight_scope);
  }
  return absl::OkStatus();
}

// Returns the temperatures of a model's heads.
absl::StatusOr<ByHead<double>> Temperatures(const AttendQuery& query,
                                            const KeyFieldSchema& field,
                                            std::int64_t head_count) {
  const double shared = query.temperature.value_or(field.temperature);
  ATTENDANT_RETURN_IF_ERROR(ValidateTemperature(shared, "temperature"));
  if (query.head_temperatures.empty()) {
    return ByHead<double>(static_cast<std::size_t>(head_count), shared);
  }
  if (static_cast<std::int64_t>(query.head_temperatures.size()) != head_count) {
    return InvalidField("head_temperatures",
                        absl::StrCat(query.head_temperatures.size()),
                        absl::StrCat(head_count, ", one a head"));
  }
  for (std::size_t h = 0; h < query.head_temperatures.size(); ++h) {
    ATTENDANT_RETURN_IF_ERROR(
        ValidateTemperature(query.head_temperatures[h],
                            absl::StrCat("head_temperatures[", h, "]")));
  }
  return ByHead<double>(query.head_temperatures.begin(),
                        query.head_temperatures.end());
}

// Records unknown examples, and adds known ones to `excluded` if they are to be
// left out of the answer.
void NoteExamples(const QueryForm& form, QueryVector& vector,
                  std::vector<RowAddress>& excluded, QueryPlan& plan) {
  const auto* examples = std::get_if<ExamplesQuery>(&form);
  if (examples == nullptr) return;
  if (examples->exclude_examples) {
    excluded.insert(excluded.end(), vector.example_rows.begin(),
                    vector.example_rows.end());
  }
  // Another head, or this one, may have recorded an id already.
  absl::flat_hash_set<ItemId> known(plan.unknown_example_ids.begin(),
                                    plan.unknown_example_ids.end());
  for (ItemId& id : vector.unknown_example_ids) {
    if (known.insert(id).second) {
      plan.unknown_example_ids.push_back(std::move(id));
    }
  }
}

// Plans a query of one key field, whose model may have several heads.
absl::Status PlanOneField(const Snapshot& snapshot, const AttendQuery& query,
                          const Interrupt& interrupt,
                          std::vector<RowAddress>& excluded, QueryPlan& plan) {
  ATTENDANT_ASSIGN_OR_RETURN(const int field, ChooseField(snapshot, query));
  const KeyFieldSchema& schema = snapshot.schema->key_fields[field];
  plan.score_kind = query.score_kind.value_or(schema.score_kind);
  ATTENDANT_ASSIGN_OR_RETURN(
      plan.model, ChooseModel(snapshot, query, field, plan.score_kind));
  const std::int64_t head_count =
      plan.model.model != nullptr ? plan.model.model->head_count() : 1;
  ATTENDANT_ASSIGN_OR_RETURN(const ByHead<double> temperatures,
                             Temperatures(query, schema, head_count));
  ATTENDANT_ASSIGN_OR_RETURN(
      QueryVector vector,
      ResolveQueryVector(snapshot, query.query, field,
                         QueryDim(snapshot, field, plan.model), "query",
                         interrupt));
  NoteExamples(query.query, vector, excluded, plan);
  if (plan.model.model != nullptr) plan.projected_query_count = 1;
  if (plan.score_kind == ScoreKind::kAdditive &&
      query.scan_mode == ScanMode::kIndex &&
      static_cast<std::int64_t>(vector.vector.size()) == schema.dim) {
    const double one = 1;
    ATTENDANT_ASSIGN_OR_RETURN(
        ByHead<PlannedHead> heads,
        PlanHeads(snapshot, field, NamedModel(), ScoreKind::kDot, {&one, 1},
                  vector.vector, "query"));
    plan.shortlist_head = std::move(heads.front());
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      plan.heads, PlanHeads(snapshot, field, plan.model, plan.score_kind,
                            temperatures, std::move(vector.vector), "query"));
  return absl::OkStatus();
}

// Refuses a query of the request that no head uses. A default query is fine.
absl::Status CheckQueryIsTaken(const AttendQuery& query) {
  const auto* vector = std::get_if<std::vector<float>>(&query.query);
  const bool is_set = vector == nullptr || !vector->empty();
  const bool is_taken = std::ranges::any_of(
      query.heads,
      [](const QueryHead& head) { return !head.query.has_value(); });
  if (!is_set || is_taken) return absl::OkStatus();
  return InvalidField("query", "one that no head takes",
                      "nothing where every head has its own");
}

// Plans several heads, each with a key field.
absl::Status PlanManyFields(const Snapshot& snapshot, const AttendQuery& query,
                            const Interrupt& interrupt,
                            std::vector<RowAddress>& excluded,
                            QueryPlan& plan) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(static_cast<std::int64_t>(query.heads.size()), 1,
                 kMaxQueryHeadCount, "heads"));
  constexpr char kNotBesideHeads[] = "nothing beside heads";
  if (!query.key_field.empty()) {
    return InvalidField("key_field", absl::StrCat("'", query.key_field, "'"),
                        kNotBesideHeads);
  }
  if (query.model.model != nullptr) {
    return InvalidField(
        "model",
        absl::StrCat(query.model.name.name, ":", query.model.name.version),
        kNotBesideHeads);
  }
  if (!query.head_temperatures.empty()) {
    return InvalidField("head_temperatures",
                        absl::StrCat(query.head_temperatures.size()),
                        kNotBesideHeads);
  }
  ATTENDANT_RETURN_IF_ERROR(CheckQueryIsTaken(query));
  // Also checked if every head has its own temperature.
  if (query.temperature) {
    ATTENDANT_RETURN_IF_ERROR(
        ValidateTemperature(*query.temperature, "temperature"));
  }
  for (std::size_t h = 0; h < query.heads.size(); ++h) {
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    const QueryHead& asked = query.heads[h];
    const std::string path = absl::StrCat("heads[", h, "].");
    ATTENDANT_ASSIGN_OR_RETURN(const int field,
                               KeyFieldNamed(*snapshot.schema, asked.key_field,
                                             absl::StrCat(path, "key_field")));
    const KeyFieldSchema& schema = snapshot.schema->key_fields[field];
    const ScoreKind kind = query.score_kind.value_or(schema.score_kind);
    if (h == 0) plan.score_kind = kind;
    ATTENDANT_ASSIGN_OR_RETURN(const NamedModel model,
                               ChooseModel(snapshot, query, field, kind));
    if (model.model != nullptr && model.model->multi_head() != nullptr) {
      return InvalidField(
          absl::StrCat(path, "key_field"),
          absl::StrCat("'", schema.name, "', which has a multi-head model"),
          "a key field without one");
    }
    const double temperature = asked.temperature.value_or(
        query.temperature.value_or(schema.temperature));
    ATTENDANT_RETURN_IF_ERROR(
        ValidateTemperature(temperature, absl::StrCat(path, "temperature")));
    const double weight = asked.weight.value_or(1);
    if (!(std::isfinite(weight) && weight > 0)) {
      return InvalidField(absl::StrCat(path, "weight"), NumberText(weight),
                          "a finite number above 0");
    }
    const QueryForm& form = asked.query ? *asked.query : query.query;
    const std::string query_path =
        asked.query ? absl::StrCat(path, "query") : "query";
    ATTENDANT_ASSIGN_OR_RETURN(
        QueryVector vector, ResolveQueryVector(snapshot, form, field,
                                               QueryDim(snapshot, field, model),
                                               query_path, interrupt));
    NoteExamples(form, vector, excluded, plan);
    if (model.model != nullptr) ++plan.projected_query_count;
    ATTENDANT_ASSIGN_OR_RETURN(
        ByHead<PlannedHead> heads,
        PlanHeads(snapshot, field, model, kind, {&temperature, 1},
                  std::move(vector.vector), query_path));
    heads.front().weight = weight;
    plan.heads.push_back(std::move(heads.front()));
  }
  // Only their ratios matter. Their sum must not overflow, nor any become 0.
  double greatest = 0;
  for (const PlannedHead& head : plan.heads) {
    greatest = std::max(greatest, head.weight);
  }
  for (PlannedHead& head : plan.heads) {
    head.weight =
        std::max(head.weight / greatest, std::numeric_limits<double>::min());
  }
  return absl::OkStatus();
}

// Limits the size of the union of the heads' shortlists.
absl::Status CheckUnion(const QueryPlan& plan) {
  const auto head_count = static_cast<std::int64_t>(plan.heads.size());
  const std::int64_t most = kMaxUnionScores / (head_count * head_count);
  if (head_count == 1 || plan.shortlist_count <= most) return absl::OkStatus();
  return OverLimit("shortlist_count", absl::StrCat(plan.shortlist_count),
                   absl::StrCat("at most ", most, " with ", head_count,
                                " heads (set it, or lower result_count)"));
}

// All heads pool into one value, so their dimensions must be equal.
absl::Status CheckPooledDims(const Snapshot& snapshot, const QueryPlan& plan) {
  if (!plan.pool_scope) return absl::OkStatus();
  const std::int64_t dim = snapshot.schema->PooledDim(plan.field());
  for (std::size_t h = 1; h < plan.heads.size(); ++h) {
    const std::int64_t other = snapshot.schema->PooledDim(plan.heads[h].field);
    if (other == dim) continue;
    return InvalidField(
        absl::StrCat("heads[", h, "].key_field"),
        absl::StrCat("keys of ", other, " components, which are pooled"),
        absl::StrCat(dim, ", as heads[0] has, or omit_pooled_value"));
  }
  return absl::OkStatus();
}

bool HasLists(const Snapshot& snapshot, const PlannedHead& head) {
  return std::ranges::any_of(snapshot.segments, [&](const SegmentView& view) {
    return view.segment->IndexOf(head.field, head.stored_head).kind() ==
           IndexKind::kIvf;
  });
}

// Returns the error of the log partition that the query tolerates; 0: any.
double MassPrecision(const Snapshot& snapshot, const AttendQuery& query,
                     const QueryPlan& plan) {
  // Certain bounds may be far apart, unless the request limits their distance.
  const bool by_catalog = (plan.weight_scope == WeightScope::kCatalog &&
                           !plan.draws_from_catalog()) ||
                          plan.pool_scope == WeightScope::kCatalog ||
                          plan.min_mass;
  // Without lists nothing is known about keys that were not scored.
  const bool must_guess =
      query.mass_method == MassMethod::kEstimate &&
      std::ranges::none_of(plan.heads, [&](const PlannedHead& head) {
        return HasLists(snapshot, head);
      });
  const bool wants_some =
      must_guess || (by_catalog && query.mass_method != MassMethod::kBound);
  double precision =
      query.mass_precision.value_or(wants_some ? kUnstatedPrecision : 0);
  if (plan.min_mass) {
    // A precise partition keeps the set that surely holds min_mass only
    // slightly larger than the set that just holds it.
    const double spare = (1 - *plan.min_mass) / 4;
    precision = precision > 0 ? std::min(precision, spare) : spare;
  }
  return precision;
}

// Returns why the index cannot answer; empty if it can.
absl::string_view WhyEveryKey(const Snapshot& snapshot,
                              const AttendQuery& query, const QueryPlan& plan) {
  for (const PlannedHead& head : plan.heads) {
    const KeyFieldSchema& field = snapshot.schema->key_fields[head.field];
    if (plan.shortlist_head) continue;  // its index supports q . k
    if (head.score_kind == ScoreKind::kAdditive && !query.heads.empty()) {
      return "score_kind ADDITIVE in heads needs every key";
    }
    if (head.score_kind == ScoreKind::kAdditive) {
      return "a shortlist for score_kind ADDITIVE is by q . k, which takes a "
             "query of the keys' dimension";
    }
    if (head.projection) {
      return "the model is not what the index was made with";
    }
    if (!RanksAlike(head.score_kind, field.score_kind)) {
      return "score_kind ranks otherwise than the index";
    }
  }
  // ADDITIVE knows nothing about keys outside of a shortlist by q . k.
  const bool asks_of_mass = plan.weight_scope == WeightScope::kCatalog ||
                            plan.pool_scope == WeightScope::kCatalog ||
                            query.min_mass || query.mass_precision ||
                            query.mass_method;
  if (plan.shortlist_head && asks_of_mass) {
    return "the mass of score_kind ADDITIVE needs every key";
  }
  if (plan.shortlist_head && query.recall == 1) {
    return "recall 1 with score_kind ADDITIVE needs every key";
  }
  if (query.mass_method == MassMethod::kExact) {
    return "mass_method EXACT needs every key";
  }
  if (plan.draws_from_catalog() && plan.heads.size() > 1) {
    return "SAMPLE by the mean weights of several heads needs every key";
  }
  if (plan.draws_from_catalog() && !HasLists(snapshot, plan.heads.front())) {
    return "weight_scope CATALOG of SAMPLE needs every key or an IVF index";
  }
  // An estimate never guarantees to hold all of the mass.
  if (plan.min_mass && *plan.min_mass == 1) return "min_mass 1 needs every key";
  if (!plan.biases.empty()) return "the index does not know biases";
  if (query.allow_list.has_value()) return "allow_list is scored exactly";
  return "";
}

// True if the query attends only to keys of indexes that AUTO chose, and to so
// few that a nearly exact answer takes little longer than one of lower recall.
bool AttendsToFewKeys(const Snapshot& snapshot, const QueryPlan& plan) {
  return !plan.shortlist_head &&
         std::ranges::all_of(plan.heads, [&](const PlannedHead& head) {
           return snapshot.schema->key_fields[head.field].index_kind ==
                      IndexKind::kAuto &&
                  snapshot.key_count(head.field) < kFewKeyCount;
         });
}

// Chooses between the index and every key, or returns why neither is possible.
absl::Status ResolveScan(const Snapshot& snapshot, const AttendQuery& query,
                         QueryPlan& plan) {
  plan.only_index = query.scan_mode == ScanMode::kIndex;
  const bool few = !plan.only_index && AttendsToFewKeys(snapshot, plan);
  const double recall_of_few =
      plan.shortlist_count <= kShortCount ? kRecallOfFewKeys : 1;
  plan.goals.recall =
      query.recall.value_or(few && !query.probe_count ? recall_of_few : 0);
  plan.goals.probe_count = query.probe_count.value_or(0);
  plan.goals.mass_precision = MassPrecision(snapshot, query, plan);
  // The value is precise to 5 % if the mass is precise to 2 %.
  constexpr double kPoolPrecisions = 2.5;
  plan.pool_precision =
      kPoolPrecisions * query.mass_precision.value_or(kUnstatedPrecision);
  plan.goals.certified = query.mass_method == MassMethod::kBound;
  plan.must_know_mass =
      query.mass_method == MassMethod::kEstimate || plan.draws_from_catalog();
  absl::string_view reason = WhyEveryKey(snapshot, query, plan);
  plan.exhaustive = query.scan_mode == ScanMode::kExact || !reason.empty() ||
                    (few && plan.draws_from_catalog());
  if (!plan.only_index) return absl::OkStatus();
  for (const PlannedHead& planned : plan.heads) {
    const PlannedHead& head =
        plan.shortlist_head ? *plan.shortlist_head : planned;
    const bool trained =
        std::ranges::any_of(snapshot.segments, [&](const SegmentView& view) {
          return view.segment->IndexOf(head.field, head.stored_head).kind() !=
                 IndexKind::kFlat;
        });
    if (reason.empty() && !trained &&
        snapshot.wanted_indexes[head.field] != IndexKind::kFlat) {
      reason = "the index is not trained yet";
    }
  }
  return reason.empty() ? absl::OkStatus() : IndexCannotAnswer(reason);
}

// Counts items with a key in the field of at least one head. `masks` must be
// complete.
std::int64_t CountEligible(const Snapshot& snapshot, const QueryPlan& plan,
                           const Masks& masks) {
  std::vector<int> fields;
  for (const PlannedHead& head : plan.heads) {
    // If every item has a key in this field, it represents all fields.
    if (snapshot.key_count(head.field) == snapshot.item_count()) {
      return masks.EligibleCount(head.field);
    }
    if (std::ranges::find(fields, head.field) == fields.end()) {
      fields.push_back(head.field);
    }
  }
  return fields.size() == 1 ? masks.EligibleCount(fields.front())
                            : masks.EligibleCount(fields);
}

}  // namespace

absl::Status IndexCannotAnswer(absl::string_view reason) {
  return StatusWithReason(absl::StatusCode::kFailedPrecondition,
                          absl::StrCat("scan_mode INDEX can't answer: ", reason,
                                       "; use AUTO or EXACT"),
                          "INDEX_CANNOT_ANSWER");
}

absl::StatusOr<QueryPlan> PlanQuery(const Snapshot& snapshot,
                                    const AttendQuery& query,
                                    const Interrupt& interrupt) {
  QueryPlan plan;
  ATTENDANT_RETURN_IF_ERROR(CheckChoices(query));
  ATTENDANT_RETURN_IF_ERROR(CheckGoals(query));
  ATTENDANT_RETURN_IF_ERROR(ResolveSizes(query, plan));
  ATTENDANT_RETURN_IF_ERROR(ResolveScopes(query, plan));
  if (query.allow_list) {
    ATTENDANT_RETURN_IF_ERROR(
        CheckCount(static_cast<std::int64_t>(query.allow_list->size()), 0,
                   kMaxIdListCount, "allow_list.ids"));
  }
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(static_cast<std::int64_t>(query.deny_list.size()), 0,
                 kMaxIdListCount, "deny_list.ids"));
  ATTENDANT_ASSIGN_OR_RETURN(plan.biases,
                             ResolveBiases(*snapshot.schema, query.biases));
  ATTENDANT_ASSIGN_OR_RETURN(
      plan.crowding_limits,
      ResolveCrowdingLimits(*snapshot.schema, query.crowding_limits));
  // To the microsecond, the precision of items' timestamps: a caller that
  // repeats the query with this time, taken from any clock or log, loses
  // nothing.
  plan.time = query.time.value_or(
      absl::FromUnixMicros(absl::ToUnixMicros(snapshot.clock->Now())));

  std::vector<RowAddress> excluded;
  ATTENDANT_RETURN_IF_ERROR(
      query.heads.empty()
          ? PlanOneField(snapshot, query, interrupt, excluded, plan)
          : PlanManyFields(snapshot, query, interrupt, excluded, plan));
  ATTENDANT_RETURN_IF_ERROR(CheckUnion(plan));
  ATTENDANT_RETURN_IF_ERROR(CheckPooledDims(snapshot, plan));
  ATTENDANT_RETURN_IF_ERROR(ResolveScan(snapshot, query, plan));

  Masks masks(snapshot);
  if (query.allow_list) {
    ATTENDANT_RETURN_IF_ERROR(
        masks.AllowOnly(*query.allow_list, "allow_list.ids", interrupt));
  }
  ATTENDANT_RETURN_IF_ERROR(
      masks.Exclude(query.deny_list, "deny_list.ids", interrupt));
  if (query.filter) {
    ATTENDANT_RETURN_IF_ERROR(masks.Keep(*query.filter, interrupt));
  }
  for (const RowAddress& address : excluded) masks.Exclude(address);
  plan.eligible_count = CountEligible(snapshot, plan, masks);
  plan.masks = std::move(masks);
  return plan;
}

}  // namespace attendant
