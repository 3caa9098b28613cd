#include "core/attention/models/model.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

// True if a model of this kind serves `score_kind`.
bool Serves(const AttentionModel& model, ScoreKind score_kind) {
  switch (score_kind) {
    case ScoreKind::kDot:
    case ScoreKind::kScaledDot:
    case ScoreKind::kCosine:
      return model.multi_head() != nullptr;
    case ScoreKind::kBilinear:
      return model.bilinear() != nullptr;
    case ScoreKind::kAdditive:
      return model.additive() != nullptr;
  }
  return false;
}

absl::Status ValidateMatrix(const Matrix& matrix, absl::string_view field) {
  ATTENDANT_RETURN_IF_ERROR(CheckCount(matrix.row_count, 1, kMaxModelDimension,
                                       absl::StrCat(field, ".row_count")));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(matrix.column_count, 1,
                                       kMaxModelDimension,
                                       absl::StrCat(field, ".column_count")));
  const std::int64_t want = matrix.row_count * matrix.column_count;
  if (static_cast<std::int64_t>(matrix.data.size()) != want) {
    return InvalidField(absl::StrCat(field, ".float32_le"),
                        absl::StrCat(matrix.data.size(), " floats"),
                        absl::StrCat(want, ", row_count x column_count"));
  }
  return ValidateFinite(matrix.data, absl::StrCat(field, ".float32_le"));
}

absl::Status ValidateProjection(const Projection& projection,
                                absl::string_view field) {
  ATTENDANT_RETURN_IF_ERROR(
      ValidateMatrix(projection.weight, absl::StrCat(field, ".weight")));
  if (projection.bias.empty()) return absl::OkStatus();
  if (static_cast<std::int64_t>(projection.bias.size()) !=
      projection.output_dim()) {
    return InvalidField(
        absl::StrCat(field, ".bias"),
        absl::StrCat(projection.bias.size(), " components"),
        absl::StrCat(projection.output_dim(), ", one a row of the weight"));
  }
  return ValidateFinite(projection.bias, absl::StrCat(field, ".bias"));
}

absl::Status CheckSame(std::int64_t got, std::int64_t want,
                       absl::string_view field, absl::string_view of) {
  if (got == want) return absl::OkStatus();
  return InvalidField(field, absl::StrCat(got), absl::StrCat(want, ", ", of));
}

absl::Status CheckDivides(std::int64_t head_count, std::int64_t rows,
                          absl::string_view field) {
  if (rows % head_count == 0) return absl::OkStatus();
  return InvalidField(
      field, absl::StrCat(rows),
      absl::StrCat("a multiple of multi_head.head_count, which is ",
                   head_count));
}

absl::Status Validate(const MultiHeadProjections& heads) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(heads.head_count, 1, kMaxHeadCount, "multi_head.head_count"));
  ATTENDANT_RETURN_IF_ERROR(
      ValidateProjection(heads.query, "multi_head.query"));
  ATTENDANT_RETURN_IF_ERROR(ValidateProjection(heads.key, "multi_head.key"));
  ATTENDANT_RETURN_IF_ERROR(CheckDivides(heads.head_count,
                                         heads.query.output_dim(),
                                         "multi_head.query.weight.row_count"));
  ATTENDANT_RETURN_IF_ERROR(CheckSame(heads.key.output_dim(),
                                      heads.query.output_dim(),
                                      "multi_head.key.weight.row_count",
                                      "the rows of multi_head.query.weight"));
  if (heads.value) {
    ATTENDANT_RETURN_IF_ERROR(
        ValidateProjection(*heads.value, "multi_head.value"));
    ATTENDANT_RETURN_IF_ERROR(
        CheckDivides(heads.head_count, heads.value->output_dim(),
                     "multi_head.value.weight.row_count"));
  }
  if (!heads.output) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(
      ValidateProjection(*heads.output, "multi_head.output"));
  if (heads.value) {
    return CheckSame(heads.output->input_dim(), heads.value->output_dim(),
                     "multi_head.output.weight.column_count",
                     "the rows of multi_head.value.weight");
  }
  return CheckDivides(heads.head_count, heads.output->input_dim(),
                      "multi_head.output.weight.column_count");
}

absl::Status Validate(const BilinearForm& form) {
  return ValidateMatrix(form.weight, "bilinear.weight");
}

absl::Status Validate(const AdditiveNetwork& network) {
  ATTENDANT_RETURN_IF_ERROR(
      ValidateMatrix(network.query_weight, "additive.query_weight"));
  ATTENDANT_RETURN_IF_ERROR(
      ValidateMatrix(network.key_weight, "additive.key_weight"));
  const std::int64_t hidden = network.query_weight.row_count;
  ATTENDANT_RETURN_IF_ERROR(CheckSame(network.key_weight.row_count, hidden,
                                      "additive.key_weight.row_count",
                                      "the rows of additive.query_weight"));
  ATTENDANT_RETURN_IF_ERROR(
      CheckSame(static_cast<std::int64_t>(network.output_weight.size()), hidden,
                "additive.output_weight", "the rows of additive.query_weight"));
  return ValidateFinite(network.output_weight, "additive.output_weight");
}

}  // namespace

void Project(const Projection& projection, std::span<const float> input,
             std::span<float> output) {
  ProjectRows(projection, {input.data(), 1, projection.input_dim()},
              output.data());
}

void ProjectRows(const Projection& projection, MatrixView inputs,
                 float* outputs) {
  ProjectRows(projection.weight.view(), projection.bias, inputs, outputs);
}

void ProjectRows(MatrixView weight, std::span<const float> bias,
                 MatrixView inputs, float* outputs) {
  const std::int64_t output_dim = weight.row_count;
  ActiveKernels().DotRowsMulti(inputs.data, inputs.row_count, weight.data,
                               output_dim, weight.dim, outputs);
  if (bias.empty()) return;
  for (std::int64_t row = 0; row < inputs.row_count; ++row) {
    float* output = outputs + row * output_dim;
    for (std::int64_t i = 0; i < output_dim; ++i) {
      output[i] += bias[i];
    }
  }
}

float KeyLimit(const AttentionModel& model) {
  const Matrix* weight = nullptr;
  double greatest_bias = 0;
  if (const auto* heads = model.multi_head()) {
    weight = &heads->key.weight;
    for (const float b : heads->key.bias) {
      greatest_bias = std::max(greatest_bias, std::abs(double{b}));
    }
  } else if (const auto* network = model.additive()) {
    weight = &network->key_weight;
  } else {
    return std::numeric_limits<float>::max();  // keys stay unprojected
  }
  double greatest_norm = 1;
  for (std::int64_t row = 0; row < weight->row_count; ++row) {
    double norm = 0;
    for (const float w : weight->view().Row(row)) norm += std::abs(double{w});
    greatest_norm = std::max(greatest_norm, norm);
  }
  // Leaves a margin so that rounding can't carry a sum past the greatest float.
  constexpr double kMost = 0.99 * std::numeric_limits<float>::max();
  return static_cast<float>(std::max(0.0, kMost - greatest_bias) /
                            greatest_norm);
}

std::int64_t AttentionModel::query_dim() const {
  if (const auto* heads = multi_head()) return heads->query.input_dim();
  if (const auto* form = bilinear()) return form->weight.row_count;
  return additive()->query_weight.column_count;
}

std::int64_t AttentionModel::key_dim() const {
  if (const auto* heads = multi_head()) return heads->key.input_dim();
  if (const auto* form = bilinear()) return form->weight.column_count;
  return additive()->key_weight.column_count;
}

std::int64_t AttentionModel::value_dim() const {
  const auto* heads = multi_head();
  if (heads == nullptr) return 0;
  if (heads->value) return heads->value->input_dim();
  return heads->output ? heads->output->input_dim() / heads->head_count : 0;
}

std::int64_t AttentionModel::head_count() const {
  const auto* heads = multi_head();
  return heads == nullptr ? 1 : heads->head_count;
}

absl::Status ValidateModel(const AttentionModel& model) {
  return std::visit([](const auto& kind) { return Validate(kind); },
                    model.kind);
}

absl::Status ValidateModelFits(const AttentionModel& model,
                               ScoreKind score_kind, std::int64_t key_dim,
                               std::int64_t value_dim,
                               absl::string_view field) {
  if (!Serves(model, score_kind)) {
    return InvalidField(
        field, "a model of another kind",
        absl::StrCat(score_kind == ScoreKind::kBilinear   ? "a bilinear"
                     : score_kind == ScoreKind::kAdditive ? "an additive"
                                                          : "a multi-head",
                     " model for ", Name(score_kind)));
  }
  if (model.key_dim() != key_dim) {
    return InvalidField(
        field, absl::StrCat("a model of keys of ", model.key_dim()),
        absl::StrCat(key_dim, ", the dimension of the key field"));
  }
  const std::int64_t pooled_dim = value_dim > 0 ? value_dim : key_dim;
  if (model.value_dim() != 0 && model.value_dim() != pooled_dim) {
    return InvalidField(
        field, absl::StrCat("a model of values of ", model.value_dim()),
        absl::StrCat(pooled_dim, ", the dimension of what is pooled"));
  }
  return absl::OkStatus();
}

absl::Status CheckIndexable(const AttentionModel& model,
                            absl::string_view field) {
  // The dimension of W_K k of a head, of U k, or of k.
  std::int64_t projected_dim = model.key_dim();
  if (const auto* heads = model.multi_head()) {
    projected_dim = heads->head_key_dim();
  } else if (const auto* network = model.additive()) {
    projected_dim = network->key_weight.row_count;
  }
  if (projected_dim <= kMaxDimension) return absl::OkStatus();
  return OverLimit(field,
                   absl::StrCat("a model of projected keys of ", projected_dim),
                   absl::StrCat("at most ", kMaxDimension, " in a head"));
}

}  // namespace attendant
