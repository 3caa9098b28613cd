// Attention models of the wire to core's and back.
#ifndef ATTENDANT_SERVICE_CONVERT_MODEL_H_
#define ATTENDANT_SERVICE_CONVERT_MODEL_H_

#include <google/protobuf/repeated_ptr_field.h>

#include <vector>

#include "absl/status/statusor.h"
#include "attendant/v1/model_service.pb.h"
#include "core/attention/models/model.h"
#include "core/attention/models/probe.h"
#include "core/catalog/live/model_set.h"

namespace attendant {

// What it computes; its name is left to the caller. InvalidArgument, naming a
// field of the message, if a part is missing or not made of floats; core checks
// shapes and numbers.
absl::StatusOr<AttentionModel> ModelFromProto(const v1::AttentionModel& wire);

// InvalidArgument naming "probes[i]...."; core checks shapes and numbers.
absl::StatusOr<std::vector<ProjectionProbe>> ProbesFromProto(
    const google::protobuf::RepeatedPtrField<v1::ProjectionProbe>& wire);

void ModelToProto(const ModelVersion& version, v1::AttentionModel* wire);
void SummaryToProto(const ModelVersion& version, v1::ModelSummary* wire);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_MODEL_H_
