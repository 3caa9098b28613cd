// Attention models: the learned projections of queries, keys and values before
// and after attention.
#ifndef ATTENDANT_CORE_ATTENTION_MODELS_MODEL_H_
#define ATTENDANT_CORE_ATTENTION_MODELS_MODEL_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/attention/softmax/score.h"
#include "core/base/views.h"

namespace attendant {

inline constexpr std::int64_t kMaxHeadCount = 256;
inline constexpr std::int64_t kMaxModelDimension = 65536;

// y = W x for a column x: [row_count, column_count], row-major, as PyTorch's
// nn.Linear stores its weight.
struct Matrix {
  std::int64_t row_count = 0;
  std::int64_t column_count = 0;
  std::vector<float> data;

  MatrixView view() const { return {data.data(), row_count, column_count}; }
  bool operator==(const Matrix&) const = default;
};

// y = W x + b.
struct Projection {
  Matrix weight;
  std::vector<float> bias;  // [weight.row_count], or empty: none

  std::int64_t input_dim() const { return weight.column_count; }
  std::int64_t output_dim() const { return weight.row_count; }
  bool operator==(const Projection&) const = default;
};

// output = projection of input. input [input_dim]; output [output_dim] is
// overwritten and must not overlap input. Does not allocate. Thread-safe.
void Project(const Projection& projection, std::span<const float> input,
             std::span<float> output);

// Projects each row: inputs [n, input_dim], outputs [n, output_dim].
void ProjectRows(const Projection& projection, MatrixView inputs,
                 float* outputs);
// Projects each row by a part of a projection, such as one head's rows: weight
// [output_dim, input_dim]; bias [output_dim], or empty.
void ProjectRows(MatrixView weight, std::span<const float> bias,
                 MatrixView inputs, float* outputs);

// Multi-head attention (Vaswani et al. 2017, sec. 3.2.2). Head h uses rows
// [h x head_key_dim, (h + 1) x head_key_dim) of W_Q and W_K, and rows
// [h x head_value_dim, (h + 1) x head_value_dim) of W_V.
struct MultiHeadProjections {
  std::int64_t head_count = 1;
  Projection query;                  // W_Q
  Projection key;                    // W_K
  std::optional<Projection> value;   // W_V; unset: values unprojected
  std::optional<Projection> output;  // W_O; unset: the heads' outputs, joined

  std::int64_t head_key_dim() const { return query.output_dim() / head_count; }
  // For values of `value_dim` components.
  std::int64_t head_value_dim(std::int64_t value_dim) const {
    return value ? value->output_dim() / head_count : value_dim;
  }
  // The dimension of the model's output for values of `value_dim` components.
  std::int64_t output_dim(std::int64_t value_dim) const {
    return output ? output->output_dim()
                  : head_count * head_value_dim(value_dim);
  }
  bool operator==(const MultiHeadProjections&) const = default;
};

// similarity = q W k (Luong et al. 2015, "general").
struct BilinearForm {
  Matrix weight;  // [query_dim, key_dim]

  bool operator==(const BilinearForm&) const = default;
};

// similarity = v . tanh(W q + U k) (Bahdanau et al. 2015, appendix A.1.2).
struct AdditiveNetwork {
  Matrix query_weight;               // W [hidden, query_dim]
  Matrix key_weight;                 // U [hidden, key_dim]
  std::vector<float> output_weight;  // v [hidden]

  bool operator==(const AdditiveNetwork&) const = default;
};

struct AttentionModel {
  std::variant<MultiHeadProjections, BilinearForm, AdditiveNetwork> kind;

  const MultiHeadProjections* multi_head() const {
    return std::get_if<MultiHeadProjections>(&kind);
  }
  const BilinearForm* bilinear() const {
    return std::get_if<BilinearForm>(&kind);
  }
  const AdditiveNetwork* additive() const {
    return std::get_if<AdditiveNetwork>(&kind);
  }

  std::int64_t query_dim() const;
  std::int64_t key_dim() const;
  // The components of a value that W_V takes; 0: any number.
  std::int64_t value_dim() const;
  std::int64_t head_count() const;  // 1 unless multi-head
  bool operator==(const AttentionModel&) const = default;
};

// OK if shapes agree and all weights are finite. Otherwise InvalidArgument
// naming a field of the wire's AttentionModel ("multi_head.key.weight").
absl::Status ValidateModel(const AttentionModel& model);

// OK if keys of `key_dim` and values of `value_dim` components (0: keys are
// pooled instead) fit the model under `score_kind`: DOT, SCALED_DOT and COSINE
// take a multi-head model, BILINEAR and ADDITIVE their own kind. Otherwise
// InvalidArgument naming `field`.
absl::Status ValidateModelFits(const AttentionModel& model,
                               ScoreKind score_kind, std::int64_t key_dim,
                               std::int64_t value_dim, absl::string_view field);

// OK if indexes can hold the keys that the model makes: at most kMaxDimension
// components per head. Otherwise ResourceExhausted naming `field`.
absl::Status CheckIndexable(const AttentionModel& model,
                            absl::string_view field);

// The name and version of a model. Empty name and version 0: none.
struct ModelName {
  std::string name;
  std::int64_t version = 0;

  bool empty() const { return name.empty(); }
  bool operator==(const ModelName&) const = default;
};

// A version of a model. Null model: none.
struct NamedModel {
  ModelName name;
  std::shared_ptr<const AttentionModel> model;
  // The greatest component of a key whose stored projections are sure to be
  // finite: see KeyLimit.
  float key_limit = std::numeric_limits<float>::max();
};

// Returns the greatest absolute value of a key's components at which no sum of
// W k + b overflows a float, in whatever order it is added: (greatest float -
// greatest |b|) / greatest L1 norm of a row of W, for the projection of keys.
float KeyLimit(const AttentionModel& model);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_MODELS_MODEL_H_
