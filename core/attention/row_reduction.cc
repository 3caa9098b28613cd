#include "core/attention/row_reduction.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/head_projection.h"
#include "core/attention/normal.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

// Keys that are not masked for all queries, in the mask's order.
std::vector<std::int32_t> Attended(const MultiHeadInput& input) {
  const AttentionMask& mask = input.mask;
  std::vector<std::int32_t> attended;
  const auto add = [&](std::int32_t position) {
    const auto i = static_cast<std::size_t>(position);
    if (mask.key_times.empty() || mask.key_times[i] <= mask.query_time) {
      attended.push_back(position);
    }
  };
  if (mask.attended) {
    std::for_each(mask.attended->begin(), mask.attended->end(), add);
  } else {
    for (std::int64_t i = 0; i < input.keys.row_count; ++i) {
      add(static_cast<std::int32_t>(i));
    }
  }
  return attended;
}

absl::Status CheckFinite(MatrixView rows,
                         std::span<const std::int32_t> positions,
                         absl::string_view name) {
  for (const std::int32_t position : positions) {
    if (!std::isnan(RowNorm(rows.Row(position).data(), rows.dim))) continue;
    return NotFinite(rows.Row(position),
                     absl::StrCat(name, "[", position, "]"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Matrix> ReduceRows(MatrixView rows,
                                  std::span<const std::int32_t> positions,
                                  const LinformerOptions& options,
                                  const Interrupt& interrupt) {
  const auto count = static_cast<std::int64_t>(positions.size());
  const std::int64_t reduced_count = std::min(options.row_count, count);
  Matrix reduced = {reduced_count, rows.dim, {}};
  reduced.data.resize(static_cast<std::size_t>(reduced_count * rows.dim));
  const double deviation = 1 / std::sqrt(static_cast<double>(reduced_count));
  std::vector<double> sum(static_cast<std::size_t>(rows.dim));
  for (std::int64_t r = 0; r < reduced_count; ++r) {
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    const bool means = options.kind == ReductionKind::kSegmentMeans;
    const std::int64_t begin = means ? r * count / reduced_count : 0;
    const std::int64_t end = means ? (r + 1) * count / reduced_count : count;
    std::fill(sum.begin(), sum.end(), 0.0);
    for (std::int64_t i = begin; i < end; ++i) {
      const double factor =
          means
              ? 1 / static_cast<double>(end - begin)
              : deviation * NormalAt(options.seed,
                                     static_cast<std::uint64_t>(r * count + i));
      const std::int32_t position = positions[static_cast<std::size_t>(i)];
      ActiveKernels().AddScaled(factor, rows.Row(position).data(), rows.dim,
                                sum.data());
    }
    std::transform(sum.begin(), sum.end(), reduced.data.begin() + r * rows.dim,
                   [](double d) { return static_cast<float>(d); });
  }
  return reduced;
}

absl::StatusOr<ReducedKeys> ReduceKeys(const MultiHeadInput& input,
                                       const LinformerOptions& options) {
  const std::vector<std::int32_t> attended = Attended(input);
  const auto reduce = [&](MatrixView rows,
                          absl::string_view name) -> absl::StatusOr<Matrix> {
    ATTENDANT_RETURN_IF_ERROR(CheckFinite(rows, attended, name));
    ATTENDANT_ASSIGN_OR_RETURN(
        Matrix reduced, ReduceRows(rows, attended, options, input.interrupt));
    for (std::int64_t r = 0; r < reduced.row_count; ++r) {
      if (std::isnan(RowNorm(reduced.view().Row(r).data(), rows.dim))) {
        return InvalidField(name, "vectors whose random combination overflows",
                            "ones within the range of floats");
      }
    }
    return reduced;
  };
  ReducedKeys reduced;
  ATTENDANT_ASSIGN_OR_RETURN(reduced.keys,
                             reduce(input.keys, input.names.keys));
  if (input.values.data == input.keys.data &&
      input.values.dim == input.keys.dim) {
    reduced.values = reduced.keys;
    return reduced;
  }
  ATTENDANT_ASSIGN_OR_RETURN(reduced.values,
                             reduce(input.values, input.names.values));
  return reduced;
}

}  // namespace attendant
