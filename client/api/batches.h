// Splits work on many items into requests.
#ifndef ATTENDANT_CLIENT_API_BATCHES_H_
#define ATTENDANT_CLIENT_API_BATCHES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace attendant {

// The most items that one request may name; a server may accept fewer
// (--max-batch).
inline constexpr std::int64_t kMaxBatchSize = 256;

// Calls `send` for consecutive ranges [begin, end) that cover [0, count), each
// of at most kMaxBatchSize numbers. `send` may lower `end` to shorten its
// range, but not to an empty one. If the server refuses a batch because it has
// too many `items` or `ids` or its message is too large, halves the batch and
// all later ones. Returns the first other error.
absl::Status SendInBatches(
    std::int64_t count,
    absl::FunctionRef<absl::Status(std::int64_t begin, std::int64_t& end)>
        send);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_BATCHES_H_
