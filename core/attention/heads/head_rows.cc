#include "core/attention/heads/head_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/attention/models/head_projection.h"

namespace attendant {
namespace {

absl::Status RowNotFinite(MatrixView rows, std::int64_t i,
                          std::span<const std::int32_t> positions,
                          absl::string_view name) {
  return NotFinite(rows.Row(i), absl::StrCat(name, "[", positions[i], "]"));
}

}  // namespace

MatrixView GatherRows(MatrixView from, std::span<const std::int32_t> positions,
                      float* copy) {
  const auto count = static_cast<std::int64_t>(positions.size());
  bool together = true;
  for (std::size_t i = 1; i < positions.size() && together; ++i) {
    together = positions[i] == positions[i - 1] + 1;
  }
  if (together) return {from.data + positions[0] * from.dim, count, from.dim};
  for (std::size_t i = 0; i < positions.size(); ++i) {
    std::copy_n(from.data + positions[i] * from.dim, from.dim,
                copy + static_cast<std::int64_t>(i) * from.dim);
  }
  return {copy, count, from.dim};
}

absl::StatusOr<double> LoadHeadKeys(const MultiHeadInput& input,
                                    std::int64_t head, MatrixView rows,
                                    std::span<const std::int32_t> positions,
                                    float* keys) {
  const bool normalises = input.score_kind == ScoreKind::kCosine;
  const std::int64_t dim = input.head_key_dim();
  if (input.heads != nullptr) {
    ProjectHead(input.heads->key, head, dim, rows, keys);
  } else if (keys != nullptr) {
    std::copy_n(rows.data, rows.row_count * dim, keys);
  }
  const float* loaded = keys != nullptr ? keys : rows.data;
  double max_norm = 0;
  for (std::int64_t i = 0; i < rows.row_count; ++i) {
    const double norm = RowNorm(loaded + i * dim, dim);
    if (std::isnan(norm)) {
      return RowNotFinite(rows, i, positions, input.names.keys);
    }
    // A key of norm 0 stays unchanged: it has similarity 0 with all queries.
    if (normalises && norm > 0) ScaleRow(1 / norm, dim, keys + i * dim);
    max_norm = std::max(max_norm, norm);
  }
  return normalises ? 1 : max_norm;
}

absl::Status LoadHeadValues(const MultiHeadInput& input, std::int64_t head,
                            MatrixView rows,
                            std::span<const std::int32_t> positions,
                            float* values) {
  const std::int64_t dim = input.head_value_dim();
  if (values != nullptr) {
    ProjectHead(*input.heads->value, head, dim, rows, values);
  }
  const float* loaded = values != nullptr ? values : rows.data;
  for (std::int64_t i = 0; i < rows.row_count; ++i) {
    if (std::isnan(RowNorm(loaded + i * dim, dim))) {
      return RowNotFinite(rows, i, positions, input.names.values);
    }
  }
  return absl::OkStatus();
}

}  // namespace attendant
