// Linformer's fixed matrices: a sequence's rows reduced along the sequence.
#ifndef ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_ROW_REDUCTION_H_
#define ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_ROW_REDUCTION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/approximations/approximation.h"
#include "core/attention/models/model.h"
#include "core/base/interrupt.h"
#include "core/base/views.h"

namespace attendant {

// E rows [min(row_count, k), dim] for each of the inputs, of its k rows at
// `positions`, in their order (Wang et al. 2020, eq. 7). With as many rows as
// there are, means of segments are the rows themselves. All by the same E,
// which seed and k decide, drawn once. Sums are doubles.
//
// Thread-safe. Cancelled and DeadlineExceeded from the interrupt.
absl::StatusOr<std::vector<Matrix>> ReduceRows(
    std::span<const MatrixView> inputs, std::span<const std::int32_t> positions,
    const LinformerOptions& options, const Interrupt& interrupt);

// Keys and values that stand in for those of `input` that are not masked for
// all queries: as they come, before a model projects them. InvalidArgument
// naming one that is not finite, or if a random combination overflows.
struct ReducedKeys {
  Matrix keys;
  Matrix values;
};
absl::StatusOr<ReducedKeys> ReduceKeys(const MultiHeadInput& input,
                                       const LinformerOptions& options);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_ROW_REDUCTION_H_
