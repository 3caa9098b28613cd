// Reads attention models from the arrays in which other systems store them.
#ifndef ATTENDANT_CLIENT_COMMANDS_MODELS_MODEL_LAYOUT_H_
#define ATTENDANT_CLIENT_COMMANDS_MODELS_MODEL_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attendant/v1/model_service.pb.h"
#include "client/files/tensor_files.h"

namespace attendant {

struct LayoutOptions {
  // The prefix of every name, as in "encoder.layers.0.self_attn.".
  std::string prefix;
  // The number of heads, which some layouts don't tell. Must agree with one
  // that does.
  std::optional<std::int64_t> head_count;
};

struct ImportedModel {
  v1::AttentionModel model;  // without a name
  std::string layout;        // for people: "PyTorch's packed in_proj"
  // Names after the prefix that are not part of the layout.
  std::vector<std::string> unused;
};

// Reads a model. The names of the tensors tell the layout. Weights are [output,
// input] and y = W x, as in nn.Linear, except where "x W" means [input,
// output]:
//   packed   in_proj_weight [3 E, E], in_proj_bias [3 E],
//            out_proj.weight, out_proj.bias
//   split    q_proj_weight [E, E], k_proj_weight [E, kdim],
//            v_proj_weight [E, vdim], in_proj_bias, out_proj.weight, .bias
//   linear   q_proj.weight, q_proj.bias, the same of k_proj, v_proj, out_proj
//   heads    W_Q_i, W_K_i, W_V_i, W_O, all x W (Vaswani et al. 2017, sec.
//            3.2.2), i from 0 or 1; b_Q_i, b_K_i, b_V_i, b_O
//   additive W [hidden, query], U [hidden, key], v [hidden]
//   bilinear W [query, key]
// Biases may be missing; so may W_V_i and W_O.
//
// InvalidArgument for names of no layout or of two, a wrong shape (the message
// says if its transpose would fit), a head count that is missing or does not
// divide the rows, or a module that attends over more than the keys given
// (bias_k, bias_v).
absl::StatusOr<ImportedModel> ModelFromTensors(const TensorFiles& tensors,
                                               const LayoutOptions& options);

// The arguments of PyTorch's nn.MultiheadAttention in a JSON object: num_heads
// (or num_attention_heads), embed_dim, kdim, vdim, dropout, add_bias_kv and
// add_zero_attn. Other members are ignored.
struct ModelConfig {
  std::optional<std::int64_t> head_count;
  std::optional<std::int64_t> embed_dim;
  std::optional<std::int64_t> key_dim;
  std::optional<std::int64_t> value_dim;
  // Applies to training only; ignored.
  double dropout = 0;
};

// Parses a config. InvalidArgument, without the file's name, for another text
// than a JSON object, a member of another type, or add_bias_kv or
// add_zero_attn, which attend over more than the keys given.
absl::StatusOr<ModelConfig> ParseModelConfig(const std::string& text);

// Returns InvalidArgument if the model's shapes are not those of the config.
absl::Status CheckConfig(const ModelConfig& config,
                         const v1::AttentionModel& model);

// Parses a JSON object {"projection": "query", "input": [...], "output":
// [...]}. InvalidArgument, without the file's name, for another text.
absl::StatusOr<v1::ProjectionProbe> ParseProbe(const std::string& text);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_MODELS_MODEL_LAYOUT_H_
