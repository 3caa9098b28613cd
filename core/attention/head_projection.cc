#include "core/attention/head_projection.h"

#include <cmath>
#include <limits>
#include <span>

#include "core/attention/score.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"

namespace attendant {

void ProjectHead(const Projection& projection, std::int64_t head,
                 std::int64_t head_dim, MatrixView inputs, float* outputs) {
  const std::int64_t first = head * head_dim;
  ActiveKernels().DotRowsMulti(
      inputs.data, inputs.row_count,
      projection.weight.data.data() + first * projection.input_dim(), head_dim,
      projection.input_dim(), outputs);
  if (projection.bias.empty()) return;
  const float* bias = projection.bias.data() + first;
  for (std::int64_t row = 0; row < inputs.row_count; ++row) {
    float* output = outputs + row * head_dim;
    for (std::int64_t d = 0; d < head_dim; ++d) output[d] += bias[d];
  }
}

double RowNorm(const float* row, std::int64_t dim) {
  float square = 0;
  ActiveKernels().DotRows(row, row, 1, dim, &square);
  // Within this range no square that counts has left the floats.
  if (square > 1e-20f && square < 1e38f) return std::sqrt(double{square});
  double sum = 0;
  for (std::int64_t d = 0; d < dim; ++d) {
    if (!std::isfinite(row[d])) return std::numeric_limits<double>::quiet_NaN();
    sum += double{row[d]} * row[d];
  }
  return std::sqrt(sum);
}

void ScaleRow(double factor, std::int64_t dim, float* row) {
  for (std::int64_t d = 0; d < dim; ++d) {
    row[d] = static_cast<float>(row[d] * factor);
  }
}

absl::Status NotFinite(std::span<const float> input, absl::string_view field) {
  ATTENDANT_RETURN_IF_ERROR(ValidateFinite(input, field));
  return InvalidField(field, "a vector whose projection overflows",
                      "one within the range of floats");
}

absl::Status NormIsZero(absl::string_view field) {
  return InvalidField(field, "norm 0", "above 0 under COSINE");
}

absl::Status LogitOverflows(absl::string_view field) {
  return InvalidField(field, "a logit that overflows",
                      "similarity x scale / temperature within the range of "
                      "floats");
}

}  // namespace attendant
