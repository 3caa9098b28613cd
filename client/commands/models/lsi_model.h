// Makes an attention model of a latent semantic index.
#ifndef ATTENDANT_CLIENT_COMMANDS_MODELS_LSI_MODEL_H_
#define ATTENDANT_CLIENT_COMMANDS_MODELS_LSI_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "attendant/v1/model_service.pb.h"

namespace attendant {

// Returns a model of one head with W_Q = W_K = V_k^T [k, item count], or
// (V_k diag(1/s))^T if `scaled`, from a directory that `attendant fit lsi`
// wrote with any --scale: a history x [item count] folds in as V_k^T x
// (Deerwester et al. 1990, "pseudo-document"). Components of x are in the order
// of ids.txt. Values are not projected. The model has no name.
//
// InvalidArgument, naming the file, if the directory is another, there are more
// items than a model may have columns or than a message holds, or a singular
// value to divide by is not > 0.
absl::StatusOr<v1::AttentionModel> LsiAttentionModel(
    const std::string& directory, bool scaled);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_MODELS_LSI_MODEL_H_
