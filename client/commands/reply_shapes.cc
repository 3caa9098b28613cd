#include "client/commands/reply_shapes.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

absl::Status CheckSize(std::int64_t got, std::int64_t want,
                       absl::string_view field) {
  if (got == want) return absl::OkStatus();
  return FieldError(absl::StatusCode::kInternal, kMalformedReply, field,
                    absl::StrCat(got), absl::StrCat(want));
}

}  // namespace

absl::Status CheckShape(const v1::ContextualizeResponse& response,
                        std::size_t token_count, std::size_t attended_count) {
  const auto rows = static_cast<std::int64_t>(token_count);
  const auto columns = static_cast<std::int64_t>(attended_count);
  ATTENDANT_RETURN_IF_ERROR(
      CheckSize(response.outputs_size(), rows, "outputs"));
  for (int h = 0; h < response.head_weights_size(); ++h) {
    const v1::AttentionMatrix& head = response.head_weights(h);
    const std::string field = absl::StrCat("head_weights[", h, "]");
    ATTENDANT_RETURN_IF_ERROR(
        CheckSize(head.row_count(), rows, absl::StrCat(field, ".row_count")));
    ATTENDANT_RETURN_IF_ERROR(CheckSize(head.column_count(), columns,
                                        absl::StrCat(field, ".column_count")));
    ATTENDANT_RETURN_IF_ERROR(CheckSize(head.weights_size(), rows * columns,
                                        absl::StrCat(field, ".weights")));
  }
  return absl::OkStatus();
}

absl::Status CheckShape(const v1::RankCandidatesResponse& response,
                        const v1::RankCandidatesRequest& request) {
  for (int c = 0; c < response.candidates_size(); ++c) {
    for (int e = 0; e < response.candidates(c).events_size(); ++e) {
      const v1::EventAttribution& event = response.candidates(c).events(e);
      const int count =
          event.profile() ? request.profile_size() : request.history_size();
      if (event.index() >= 0 && event.index() < count) continue;
      return FieldError(
          absl::StatusCode::kInternal, kMalformedReply,
          absl::StrCat("candidates[", c, "].events[", e, "].index"),
          absl::StrCat(event.index()),
          absl::StrCat("one of ", count,
                       event.profile() ? " of the profile" : " events"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckShape(const v1::AttendResponse& response,
                        const v1::AttendRequest& request) {
  if (!request.include_head_weights() || response.heads_size() < 2) {
    return absl::OkStatus();
  }
  for (int i = 0; i < response.items_size(); ++i) {
    ATTENDANT_RETURN_IF_ERROR(
        CheckSize(response.items(i).head_weights_size(), response.heads_size(),
                  absl::StrCat("items[", i, "].head_weights")));
  }
  return absl::OkStatus();
}

}  // namespace attendant
