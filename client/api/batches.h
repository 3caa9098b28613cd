// Requests about more items than one request names.
#ifndef ATTENDANT_CLIENT_API_BATCHES_H_
#define ATTENDANT_CLIENT_API_BATCHES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace attendant {

// Items that one request may name, unless a server takes fewer (--max-batch).
inline constexpr std::int64_t kMaxBatchSize = 256;

// Calls `send` for [begin, end) after [begin, end) of the numbers in [0,
// count), each at most kMaxBatchSize long; `send` may end one sooner, by an
// `end` that is less, but not of nothing. A batch that is refused as more
// `items` or `ids`, or as more of a message, than the server takes is halved,
// and so are all after it. The first other error ends it.
absl::Status SendInBatches(
    std::int64_t count,
    absl::FunctionRef<absl::Status(std::int64_t begin, std::int64_t& end)>
        send);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_BATCHES_H_
