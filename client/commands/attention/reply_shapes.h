// Checks that replies have the shapes that reports and pictures rely on, since
// a server of another version, or another program, may send anything.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_REPLY_SHAPES_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_REPLY_SHAPES_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/attention_service.pb.h"
#include "attendant/v1/sequence_service.pb.h"

namespace attendant {

// The reason of the errors of CheckShape, which are Internal and name the
// reply's field.
inline constexpr absl::string_view kMalformedReply = "MALFORMED_REPLY";

// Returns OK if there is an output for each of `token_count` tokens, weights of
// at least one head if the request includes weights, and if each head's weights
// are `token_count` x `attended_count`, finite and not negative.
absl::Status CheckShape(const v1::ContextualizeResponse& response,
                        const v1::ContextualizeRequest& request,
                        std::size_t token_count, std::size_t attended_count);

// Returns OK if every event named is one of the request's, and if weights are
// finite and not negative (any with activation NONE).
absl::Status CheckShape(const v1::RankCandidatesResponse& response,
                        const v1::RankCandidatesRequest& request);

// Returns OK if each item has a weight by each head where the request includes
// head weights and there are several heads, and if weights are finite and not
// negative (any with activation NONE).
absl::Status CheckShape(const v1::AttendResponse& response,
                        const v1::AttendRequest& request);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_REPLY_SHAPES_H_
