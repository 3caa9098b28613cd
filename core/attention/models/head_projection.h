// One head's part of a projection, and helpers for finite rows. Internal.
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
// projection of inputs [n, input_dim]: bytewise the same as from ProjectRows.
void ProjectHead(const Projection& projection, std::int64_t head,
                 std::int64_t head_dim, MatrixView inputs, float* outputs);

// Returns the Euclidean norm of a row of `dim` floats, within a relative error
// of dim x 2^-23; NaN if a float is not finite.
double RowNorm(const float* row, std::int64_t dim);

// Multiplies `row` by `factor`.
void ScaleRow(double factor, std::int64_t dim, float* row);

// Returns the error for a row that is not finite, or whose projection is not:
// `input` is the row before projection.
absl::Status NotFinite(std::span<const float> input, absl::string_view field);
// OK if the `dim` floats of an output are finite, else InvalidArgument naming
// `field`, the values that it was computed from.
absl::Status CheckOutput(const float* output, std::int64_t dim,
                         absl::string_view field);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_MODELS_HEAD_PROJECTION_H_
