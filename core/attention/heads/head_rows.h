// Loads one head's keys and values from rows of the input. Internal.
#ifndef ATTENDANT_CORE_ATTENTION_HEADS_HEAD_ROWS_H_
#define ATTENDANT_CORE_ATTENTION_HEADS_HEAD_ROWS_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/heads/multi_head.h"
#include "core/base/views.h"

namespace attendant {

// Returns the rows of `from` at `positions`, at least one: in place if they are
// contiguous, else copied to `copy` [positions, from.dim].
MatrixView GatherRows(MatrixView from, std::span<const std::int32_t> positions,
                      float* copy);

// Computes one head's keys of `rows`, which are at `positions` in input.keys,
// and stores them to keys [rows, head_key_dim]: projected, and under COSINE of
// norm 1 or 0. `keys` may be null if the keys are the rows themselves: without
// heads and not under COSINE. Returns an upper bound of their norms.
// InvalidArgument naming a key that is not finite.
absl::StatusOr<double> LoadHeadKeys(const MultiHeadInput& input,
                                    std::int64_t head, MatrixView rows,
                                    std::span<const std::int32_t> positions,
                                    float* keys);

// Computes one head's values of `rows` of input.values, in the same way, to
// values [rows, head_value_dim]; null where no W_V projects them.
absl::Status LoadHeadValues(const MultiHeadInput& input, std::int64_t head,
                            MatrixView rows,
                            std::span<const std::int32_t> positions,
                            float* values);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_HEADS_HEAD_ROWS_H_
