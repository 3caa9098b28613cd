#include "client/commands/attention/reply_shapes.h"

#include <cmath>
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

absl::Status CheckWeight(double weight, absl::string_view field) {
  if (std::isfinite(weight) && weight >= 0) return absl::OkStatus();
  return FieldError(absl::StatusCode::kInternal, kMalformedReply, field,
                    absl::StrCat(weight), "a finite number, at least 0");
}

}  // namespace

absl::Status CheckShape(const v1::ContextualizeResponse& response,
                        const v1::ContextualizeRequest& request,
                        std::size_t token_count, std::size_t attended_count) {
  const auto rows = static_cast<std::int64_t>(token_count);
  const auto columns = static_cast<std::int64_t>(attended_count);
  ATTENDANT_RETURN_IF_ERROR(
      CheckSize(response.outputs_size(), rows, "outputs"));
  if (request.include_weights() && response.head_weights().empty()) {
    return FieldError(absl::StatusCode::kInternal, kMalformedReply,
                      "head_weights", "none", "one a head, as asked for");
  }
  for (int h = 0; h < response.head_weights_size(); ++h) {
    const v1::AttentionMatrix& head = response.head_weights(h);
    const std::string field = absl::StrCat("head_weights[", h, "]");
    ATTENDANT_RETURN_IF_ERROR(
        CheckSize(head.row_count(), rows, absl::StrCat(field, ".row_count")));
    ATTENDANT_RETURN_IF_ERROR(CheckSize(head.column_count(), columns,
                                        absl::StrCat(field, ".column_count")));
    const std::string weights = absl::StrCat(field, ".weights");
    ATTENDANT_RETURN_IF_ERROR(
        CheckSize(head.weights_size(), rows * columns, weights));
    for (int i = 0; i < head.weights_size(); ++i) {
      ATTENDANT_RETURN_IF_ERROR(
          CheckWeight(head.weights(i), absl::StrCat(weights, "[", i, "]")));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckShape(const v1::RankCandidatesResponse& response,
                        const v1::RankCandidatesRequest& request) {
  // With NONE weights are the logits.
  const bool any_sign = request.activation_kind() == v1::ACTIVATION_KIND_NONE;
  for (int c = 0; c < response.candidates_size(); ++c) {
    for (int e = 0; e < response.candidates(c).events_size(); ++e) {
      const v1::EventAttribution& event = response.candidates(c).events(e);
      const std::string field =
          absl::StrCat("candidates[", c, "].events[", e, "]");
      if (!any_sign) {
        ATTENDANT_RETURN_IF_ERROR(
            CheckWeight(event.weight(), absl::StrCat(field, ".weight")));
      }
      const int count =
          event.profile() ? request.profile_size() : request.history_size();
      if (event.index() >= 0 && event.index() < count) continue;
      return FieldError(
          absl::StatusCode::kInternal, kMalformedReply,
          absl::StrCat(field, ".index"), absl::StrCat(event.index()),
          absl::StrCat("one of ", count,
                       event.profile() ? " of the profile" : " events"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckShape(const v1::AttendResponse& response,
                        const v1::AttendRequest& request) {
  const bool has_heads =
      request.include_head_weights() && response.heads_size() > 1;
  const bool any_sign = response.activation_kind() == v1::ACTIVATION_KIND_NONE;
  for (int i = 0; i < response.items_size(); ++i) {
    const v1::AttendedItem& item = response.items(i);
    const std::string field = absl::StrCat("items[", i, "]");
    if (has_heads) {
      ATTENDANT_RETURN_IF_ERROR(
          CheckSize(item.head_weights_size(), response.heads_size(),
                    absl::StrCat(field, ".head_weights")));
    }
    if (any_sign) continue;
    ATTENDANT_RETURN_IF_ERROR(
        CheckWeight(item.weight(), absl::StrCat(field, ".weight")));
    for (int h = 0; h < item.head_weights_size(); ++h) {
      ATTENDANT_RETURN_IF_ERROR(CheckWeight(
          item.head_weights(h), absl::StrCat(field, ".head_weights[", h, "]")));
    }
  }
  return absl::OkStatus();
}

}  // namespace attendant
