// Turns a query's vector into the heads that attend with it, through the model
// of the key field or of the request.
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

// True if the score kind compares the vectors themselves.
constexpr bool IsDotLike(ScoreKind kind) {
  return kind == ScoreKind::kDot || kind == ScoreKind::kScaledDot ||
         kind == ScoreKind::kCosine;
}

// A head that is ready to scan.
struct PlannedHead {
  int field = 0;
  // The head_indexes entry to scan; -1: the field's own keys.
  int stored_head = -1;
  ScoreKind score_kind = ScoreKind::kDot;
  double temperature = 1;
  double logit_factor = 1;
  double weight = 1;                     // in the mean over heads
  std::vector<float> vector;             // of norm 1 for COSINE
  std::span<const float> output_weight;  // for ADDITIVE
  // The projection of keys at query time, for a model that is not the field's.
  std::optional<KeyProjection> projection;
  std::string query_path;  // the request field the vector came from
};

// Returns the model that a query of `field` uses under score_kind: the query's
// own, or the field's if it serves that kind, or a null model. InvalidArgument
// if the model does not fit or a required one is missing.
absl::StatusOr<NamedModel> ChooseModel(const Snapshot& snapshot,
                                       const AttendQuery& query, int field,
                                       ScoreKind score_kind);

// Returns the number of components of a query of `field` that uses `model`.
std::int64_t QueryDim(const Snapshot& snapshot, int field,
                      const NamedModel& model);

// True if `model` is not the one that produced the field's stored keys.
bool IsForeign(const Snapshot& snapshot, int field, const NamedModel& model);

// Returns the heads of a query vector of QueryDim floats: one, or one for each
// head of a multi-head model. `temperatures` has one entry per head. The model
// must outlive the result. InvalidArgument, naming the field at `path`, if a
// projection overflows or has norm 0 under COSINE.
absl::StatusOr<ByHead<PlannedHead>> PlanHeads(
    const Snapshot& snapshot, int field, const NamedModel& model,
    ScoreKind score_kind, std::span<const double> temperatures,
    std::vector<float> vector, absl::string_view path);

// Returns `status`, an error of scoring keys for `head`. If it blames "query",
// the field is replaced by the one that the head's query came from.
absl::Status InQueryOf(const PlannedHead& head, const absl::Status& status);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_QUERY_HEADS_H_
