#include "core/attention/row_reduction.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/attended_keys.h"
#include "core/attention/head_projection.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

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

// What a row of E combines: factors of the rows from `begin` on.
struct ReductionRow {
  std::size_t begin = 0;
  std::vector<double> factors;
};

ReductionRow RowOf(const LinformerOptions& options, std::int64_t r,
                   std::int64_t reduced_count, std::int64_t count) {
  if (options.kind == ReductionKind::kSegmentMeans) {
    const std::int64_t begin = r * count / reduced_count;
    const std::int64_t size = (r + 1) * count / reduced_count - begin;
    return {static_cast<std::size_t>(begin),
            std::vector<double>(static_cast<std::size_t>(size),
                                1 / static_cast<double>(size))};
  }
  std::vector<float> normals(static_cast<std::size_t>(count));
  const std::int64_t drawn = count + count % 2;  // in pairs
  FillNormals(NormalUse::kRowReduction, options.seed,
              static_cast<std::uint64_t>(r * drawn), normals);
  const double deviation = 1 / std::sqrt(static_cast<double>(reduced_count));
  ReductionRow row;
  for (const float normal : normals) row.factors.push_back(deviation * normal);
  return row;
}

}  // namespace

absl::StatusOr<std::vector<Matrix>> ReduceRows(
    std::span<const MatrixView> inputs, std::span<const std::int32_t> positions,
    const LinformerOptions& options, const Interrupt& interrupt) {
  const auto count = static_cast<std::int64_t>(positions.size());
  const std::int64_t reduced_count = std::min(options.row_count, count);
  std::vector<Matrix> reduced;
  for (const MatrixView rows : inputs) {
    reduced.push_back({reduced_count, rows.dim, {}});
  }
  for (std::int64_t r = 0; r < reduced_count; ++r) {
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    const ReductionRow row = RowOf(options, r, reduced_count, count);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const MatrixView rows = inputs[k];
      std::vector<double> sum(static_cast<std::size_t>(rows.dim));
      for (std::size_t i = 0; i < row.factors.size(); ++i) {
        const std::int32_t position = positions[row.begin + i];
        ActiveKernels().AddScaled(row.factors[i], rows.Row(position).data(),
                                  rows.dim, sum.data());
      }
      std::transform(sum.begin(), sum.end(),
                     std::back_inserter(reduced[k].data),
                     [](double d) { return static_cast<float>(d); });
    }
  }
  return reduced;
}

absl::StatusOr<ReducedKeys> ReduceKeys(const MultiHeadInput& input,
                                       const LinformerOptions& options) {
  const std::vector<std::int32_t> attended = AttendedKeys(input);
  const bool is_shared = input.values.data == input.keys.data &&
                         input.values.dim == input.keys.dim;
  std::vector<MatrixView> inputs = {input.keys};
  std::vector<absl::string_view> names = {input.names.keys};
  if (!is_shared) {
    inputs.push_back(input.values);
    names.push_back(input.names.values);
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    ATTENDANT_RETURN_IF_ERROR(CheckFinite(inputs[k], attended, names[k]));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      std::vector<Matrix> reduced,
      ReduceRows(inputs, attended, options, input.interrupt));
  for (std::size_t k = 0; k < reduced.size(); ++k) {
    const MatrixView rows = reduced[k].view();
    for (std::int64_t r = 0; r < rows.row_count; ++r) {
      if (!std::isnan(RowNorm(rows.Row(r).data(), rows.dim))) continue;
      return InvalidField(names[k],
                          "vectors whose random combination overflows",
                          "ones within the range of floats");
    }
  }
  ReducedKeys keys;
  keys.values = is_shared ? reduced[0] : std::move(reduced[1]);
  keys.keys = std::move(reduced[0]);
  return keys;
}

}  // namespace attendant
