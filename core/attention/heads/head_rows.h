// Keys and values of one head from rows of the input. Internal.
#ifndef ATTENDANT_CORE_ATTENTION_HEADS_HEAD_ROWS_H_
#define ATTENDANT_CORE_ATTENTION_HEADS_HEAD_ROWS_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/heads/multi_head.h"
#include "core/base/views.h"

namespace attendant {

// The rows of `from` at `positions`, of which there is one at least: in place
// if they lie together, else copied to `copy` [positions, from.dim].
MatrixView GatherRows(MatrixView from, std::span<const std::int32_t> positions,
                      float* copy);

// One head's keys of `rows`, which stand at `positions` in input.keys: keys
// [rows, head_key_dim] receives them projected, under COSINE of norm 1 or 0.
// `keys` may be null where they are the rows themselves: without heads, and not
// under COSINE. Returns at least their greatest norm. InvalidArgument naming
// one that is not finite.
absl::StatusOr<double> LoadHeadKeys(const MultiHeadInput& input,
                                    std::int64_t head, MatrixView rows,
                                    std::span<const std::int32_t> positions,
                                    float* keys);

// The same of input.values: values [rows, head_value_dim], null where no W_V
// projects them.
absl::Status LoadHeadValues(const MultiHeadInput& input, std::int64_t head,
                            MatrixView rows,
                            std::span<const std::int32_t> positions,
                            float* values);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_HEADS_HEAD_ROWS_H_
