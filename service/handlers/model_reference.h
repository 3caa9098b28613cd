// Looks up models that requests name.
#ifndef ATTENDANT_SERVICE_HANDLERS_MODEL_REFERENCE_H_
#define ATTENDANT_SERVICE_HANDLERS_MODEL_REFERENCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/model_service.pb.h"
#include "core/attention/models/model.h"
#include "core/catalog/live/model_set.h"

namespace attendant {

// Returns the model that `wire` names; the newest version if it gives none.
// NotFound, or InvalidArgument naming a part of `field`.
absl::StatusOr<std::shared_ptr<const ModelVersion>> FindModelVersion(
    const ModelSet& models, const v1::ModelReference& wire,
    absl::string_view field);

// Like FindModelVersion, without the creation time and the symmetry.
absl::StatusOr<NamedModel> FindModel(const ModelSet& models,
                                     const v1::ModelReference& wire,
                                     absl::string_view field);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HANDLERS_MODEL_REFERENCE_H_
