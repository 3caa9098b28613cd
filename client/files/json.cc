#include "client/files/json.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace attendant {

absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text) {
  using Event = nlohmann::json::parse_event_t;
  bool too_deep = false;
  // What the callback refuses is skipped, and never built.
  const auto keep = [&](int depth, Event event, const nlohmann::json&) {
    if (event != Event::object_start && event != Event::array_start) {
      return true;
    }
    too_deep = too_deep || depth >= kMaxJsonDepth;
    return !too_deep;
  };
  nlohmann::json object = nlohmann::json::parse(text.begin(), text.end(), keep,
                                                /*allow_exceptions=*/false);
  if (too_deep) {
    return absl::InvalidArgumentError(
        absl::StrCat("nested more than ", kMaxJsonDepth, " levels deep"));
  }
  if (!object.is_object()) {
    return absl::InvalidArgumentError("not a JSON object");
  }
  return object;
}

}  // namespace attendant
