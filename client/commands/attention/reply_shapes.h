// Whether replies have the shapes that reports and pictures read them by: a
// server of another version, or none of ours, may send anything.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_REPLY_SHAPES_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_REPLY_SHAPES_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/attention_service.pb.h"
#include "attendant/v1/sequence_service.pb.h"

namespace attendant {

// The reason of what these return but OK: Internal, naming the reply's field.
inline constexpr absl::string_view kMalformedReply = "MALFORMED_REPLY";

// An output for each of the `token_count` tokens; weights, of at least one head
// where the request includes them, of those by the `attended_count` that they
// attend to, finite and not negative.
absl::Status CheckShape(const v1::ContextualizeResponse& response,
                        const v1::ContextualizeRequest& request,
                        std::size_t token_count, std::size_t attended_count);

// Every event named is one of the request's; weights are finite and not
// negative, unless the activation is NONE.
absl::Status CheckShape(const v1::RankCandidatesResponse& response,
                        const v1::RankCandidatesRequest& request);

// Each item has a weight by each of several heads, where the request includes
// them; weights are finite and not negative, unless the activation is NONE.
absl::Status CheckShape(const v1::AttendResponse& response,
                        const v1::AttendRequest& request);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_REPLY_SHAPES_H_
