// From a query's vector to the heads that attend with it: through the model of
// the key field, or of the request.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_QUERY_HEADS_H_
#define ATTENDANT_CORE_CATALOG_QUERY_QUERY_HEADS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/query/by_head.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// True if what is compared are the vectors themselves.
constexpr bool IsDotLike(ScoreKind kind) {
  return kind == ScoreKind::kDot || kind == ScoreKind::kScaledDot ||
         kind == ScoreKind::kCosine;
}

// One head, ready to be scanned with.
struct PlannedHead {
  int field = 0;
  // The head_indexes entry scanned; -1: the field's keys themselves.
  int stored_head = -1;
  ScoreKind score_kind = ScoreKind::kDot;
  double temperature = 1;
  double logit_factor = 1;
  std::vector<float> vector;             // of norm 1 for COSINE
  std::span<const float> output_weight;  // of ADDITIVE
  // What keys go through at the time of the query, for a model that is not the
  // field's.
  std::optional<KeyProjection> projection;
  std::string query_path;  // the request's field that the vector came from
};

// The model that a query of `field` goes through under score_kind: the query's
// own, or the field's if it serves that kind; model null: none. InvalidArgument
// if it does not fit or one is missing.
absl::StatusOr<NamedModel> ChooseModel(const Snapshot& snapshot,
                                       const AttendQuery& query, int field,
                                       ScoreKind score_kind);

// Components of a query of `field` that goes through `model`.
std::int64_t QueryDim(const Snapshot& snapshot, int field,
                      const NamedModel& model);

// True if `model` is not the one that the field's keys are stored by.
bool IsForeign(const Snapshot& snapshot, int field, const NamedModel& model);

// The heads of a query vector, QueryDim floats: one, or each of a multi-head
// model. temperatures has one entry a head. The model must outlive them.
// InvalidArgument, of the field at `path`, if a projection overflows, or has
// norm 0 under COSINE.
absl::StatusOr<ByHead<PlannedHead>> PlanHeads(
    const Snapshot& snapshot, int field, const NamedModel& model,
    ScoreKind score_kind, std::span<const double> temperatures,
    std::vector<float> vector, absl::string_view path);

// The same status of scoring keys for the head, where it is the fault of
// "query" naming the field that the head has its query from.
absl::Status InQueryOf(const PlannedHead& head, const absl::Status& status);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_QUERY_HEADS_H_
