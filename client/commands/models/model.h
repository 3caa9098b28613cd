// Stores models and formats them for people.
#ifndef ATTENDANT_CLIENT_COMMANDS_MODELS_MODEL_H_
#define ATTENDANT_CLIENT_COMMANDS_MODELS_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "attendant/v1/model_service.pb.h"
#include "client/commands/shared/command.h"

namespace attendant {

// Returns the model's version, shapes, size and symmetry in a few lines.
std::string DescribeModel(const v1::ModelSummary& model, const Style& style);

// Stores the model as the next version of `name`, checked by `probes`, and
// prints the result. Returns the server's errors.
absl::Status StoreModel(v1::AttentionModel model, const std::string& name,
                        const std::vector<v1::ProjectionProbe>& probes,
                        const Context& context);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_MODELS_MODEL_H_
