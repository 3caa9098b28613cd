// Linformer's fixed matrices, which reduce a sequence's rows along the
// sequence.
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

// Returns, for each input, E rows [min(row_count, k), dim] of its k rows at
// `positions`, in their order (Wang et al. 2020, eq. 7). If row_count >= k,
// segment means are the rows themselves. One E, drawn once from the seed and k,
// serves all inputs. Sums are doubles.
//
// Thread-safe. Cancelled and DeadlineExceeded from the interrupt.
absl::StatusOr<std::vector<Matrix>> ReduceRows(
    std::span<const MatrixView> inputs, std::span<const std::int32_t> positions,
    const LinformerOptions& options, const Interrupt& interrupt);

// Reduced keys and values that replace those of `input` that are not masked for
// all queries, before any model projection. InvalidArgument naming a key or
// value that is not finite, or if a random combination overflows.
struct ReducedKeys {
  Matrix keys;
  Matrix values;
};
absl::StatusOr<ReducedKeys> ReduceKeys(const MultiHeadInput& input,
                                       const LinformerOptions& options);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_ROW_REDUCTION_H_
