// One head's part of a projection, and rows fit to attend with. Internal.
#ifndef ATTENDANT_CORE_ATTENTION_MODELS_HEAD_PROJECTION_H_
#define ATTENDANT_CORE_ATTENTION_MODELS_HEAD_PROJECTION_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/attention/models/model.h"
#include "core/base/views.h"

namespace attendant {

// outputs [n, head_dim] = rows [head x head_dim, (head + 1) x head_dim) of the
// projection of inputs [n, input_dim]: the bytes that ProjectRows gives.
void ProjectHead(const Projection& projection, std::int64_t head,
                 std::int64_t head_dim, MatrixView inputs, float* outputs);

// The Euclidean norm of a row of `dim` floats, within dim x 2^-23 of itself;
// NaN if one of them is not finite.
double RowNorm(const float* row, std::int64_t dim);

// row *= factor.
void ScaleRow(double factor, std::int64_t dim, float* row);

// Why a row, or its projection, is not finite: `input` is the row before.
absl::Status NotFinite(std::span<const float> input, absl::string_view field);
// OK if the `dim` floats of an output are finite, else InvalidArgument naming
// the values that it is of.
absl::Status CheckOutput(const float* output, std::int64_t dim,
                         absl::string_view field);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_MODELS_HEAD_PROJECTION_H_
