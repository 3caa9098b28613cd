// Converts attention models between the wire and core.
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

// Converts everything but the name. InvalidArgument, naming a field of the
// message, if a part is missing or its bytes are not floats; core checks shapes
// and numbers.
absl::StatusOr<AttentionModel> ModelFromProto(const v1::AttentionModel& wire);

// InvalidArgument names a field such as "probes[i]...."; core checks shapes and
// numbers.
absl::StatusOr<std::vector<ProjectionProbe>> ProbesFromProto(
    const google::protobuf::RepeatedPtrField<v1::ProjectionProbe>& wire);

void ModelToProto(const ModelVersion& version, v1::AttentionModel* wire);
void SummaryToProto(const ModelVersion& version, v1::ModelSummary* wire);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_MODEL_H_
