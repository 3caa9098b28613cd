// Attention models from the arrays that other systems keep them in.
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
  // Before every name, as in "encoder.layers.0.self_attn.".
  std::string prefix;
  // Of a layout whose names don't tell. Must agree with one whose names do.
  std::optional<std::int64_t> head_count;
};

struct ImportedModel {
  v1::AttentionModel model;  // without a name
  std::string layout;        // for people: "PyTorch's packed in_proj"
  // Names after the prefix that are not part of the layout.
  std::vector<std::string> unused;
};

// Which layout it is follows from the names. y = W x, with W as nn.Linear has
// it, [output, input], except where "x W" says [input, output]:
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
// InvalidArgument: names of no layout or of two, a shape that does not fit
// (says so if its transpose would), a head count that is missing or does not
// divide, or a module that adds to what it is given (bias_k, bias_v).
absl::StatusOr<ImportedModel> ModelFromTensors(const TensorFiles& tensors,
                                               const LayoutOptions& options);

// A JSON object as PyTorch's nn.MultiheadAttention is made with: num_heads (or
// num_attention_heads), embed_dim, kdim, vdim, dropout, add_bias_kv,
// add_zero_attn; what else stands there is passed over.
struct ModelConfig {
  std::optional<std::int64_t> head_count;
  std::optional<std::int64_t> embed_dim;
  std::optional<std::int64_t> key_dim;
  std::optional<std::int64_t> value_dim;
  // Drops weights in training only. Never applied here.
  double dropout = 0;
};

// InvalidArgument, without a file's name: no JSON object, a member of another
// type, or add_bias_kv or add_zero_attn, which attend over more than the keys
// given.
absl::StatusOr<ModelConfig> ParseModelConfig(const std::string& text);

// InvalidArgument if the model's shapes are not those of the config.
absl::Status CheckConfig(const ModelConfig& config,
                         const v1::AttentionModel& model);

// A JSON object {"projection": "query", "input": [...], "output": [...]}.
// InvalidArgument, without a file's name, if it is not that.
absl::StatusOr<v1::ProjectionProbe> ParseProbe(const std::string& text);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_MODELS_MODEL_LAYOUT_H_
