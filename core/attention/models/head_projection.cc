#include "core/attention/models/head_projection.h"

#include <cmath>
#include <limits>
#include <span>

#include "core/attention/softmax/score.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"

namespace attendant {

void ProjectHead(const Projection& projection, std::int64_t head,
                 std::int64_t head_dim, MatrixView inputs, float* outputs) {
  const std::int64_t first = head * head_dim;
  std::span<const float> bias = projection.bias;
  if (!bias.empty()) {
    bias = bias.subspan(static_cast<std::size_t>(first),
                        static_cast<std::size_t>(head_dim));
  }
  const MatrixView weight = projection.weight.view();
  ProjectRows({weight.data + first * weight.dim, head_dim, weight.dim}, bias,
              inputs, outputs);
}

double RowNorm(const float* row, std::int64_t dim) {
  float square = 0;
  ActiveKernels().DotRows(row, row, 1, dim, &square);
  // Within this range no square that matters has over- or underflowed.
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

absl::Status CheckOutput(const float* output, std::int64_t dim,
                         absl::string_view field) {
  if (!std::isnan(RowNorm(output, dim))) return absl::OkStatus();
  return InvalidField(field,
                      "values whose weighted sum, or its projection, overflows",
                      "ones within the range of floats");
}

}  // namespace attendant
