// The attention model of a latent semantic index.
#ifndef ATTENDANT_CLIENT_COMMANDS_MODELS_LSI_MODEL_H_
#define ATTENDANT_CLIENT_COMMANDS_MODELS_LSI_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "attendant/v1/model_service.pb.h"

namespace attendant {

// One head with W_Q = W_K = V_k^T [k, item count], or (V_k diag(1/s))^T if
// `scaled`, from a directory that `attendant fit lsi` wrote with whatever
// --scale: a history x of so many items folds in as V_k^T x (Deerwester et al.
// 1990, "pseudo-document"). Components of x stand in the order of ids.txt.
// Values pass as they are.
//
// InvalidArgument, naming the file: not such a directory, more items than a
// model has columns or than a message holds, or a singular value that would
// have to divide and is not > 0. The model has no name.
absl::StatusOr<v1::AttentionModel> LsiAttentionModel(
    const std::string& directory, bool scaled);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_MODELS_LSI_MODEL_H_
