// Converts histories and results of sequence attention between the wire and
// core.
#ifndef ATTENDANT_SERVICE_CONVERT_SEQUENCE_H_
#define ATTENDANT_SERVICE_CONVERT_SEQUENCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/sequence_service.pb.h"
#include "core/attention/models/model.h"
#include "core/attention/sequences/contextualize.h"
#include "core/catalog/query/rank_items.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// ReplyTooLarge if the floats alone exceed max_bytes.
absl::Status ContextToProto(const SequenceContext& context,
                            std::int64_t max_bytes,
                            v1::ContextualizeResponse* wire);

// Converts all but the catalog, the model and the filter (see FilterOfRequest).
// Core checks limits and what depends on the catalog.
absl::StatusOr<RankQuery> RankQueryFromProto(
    const v1::RankCandidatesRequest& wire);

// Fills in all fields except compute_duration. `snapshot` is the one that
// answered. ReplyTooLarge as soon as the candidates alone exceed max_bytes.
absl::Status RankAnswerToProto(const RankAnswer& answer,
                               const Snapshot& snapshot, std::int64_t max_bytes,
                               v1::RankCandidatesResponse* wire);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_SEQUENCE_H_
