#include "client/files/json.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

using Event = nlohmann::json::parse_event_t;

// Finds a name that an object of a text has twice.
class Names {
 public:
  void See(int depth, Event event, const nlohmann::json& parsed) {
    if (event == Event::object_start) {
      // The names of the object that begins are one level deeper.
      const auto level = static_cast<std::size_t>(depth) + 1;
      if (seen_.size() <= level) seen_.resize(level + 1);
      seen_[level].clear();
    } else if (event == Event::key) {
      auto name = parsed.get<std::string>();
      const auto level = static_cast<std::size_t>(depth);
      if (!seen_[level].insert(name).second && !repeated_.has_value()) {
        repeated_ = std::move(name);
      }
    }
  }
  const std::optional<std::string>& repeated() const { return repeated_; }

 private:
  std::vector<std::set<std::string>> seen_;  // of the object open at each depth
  std::optional<std::string> repeated_;
};

absl::StatusOr<nlohmann::json> Parse(absl::string_view text, Names* names) {
  bool too_deep = false;
  // The parser skips values that the callback refuses, without building them.
  const auto keep = [&](int depth, Event event, const nlohmann::json& parsed) {
    if (names != nullptr && !too_deep) names->See(depth, event, parsed);
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

}  // namespace

absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text) {
  return Parse(text, nullptr);
}

absl::StatusOr<nlohmann::json> ParseJsonObjectWithUniqueNames(
    absl::string_view text) {
  Names names;
  absl::StatusOr<nlohmann::json> object = Parse(text, &names);
  if (object.ok() && names.repeated().has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an object with two members \"", *names.repeated(), "\""));
  }
  return object;
}

std::string TextOf(const nlohmann::json& object, absl::string_view name) {
  const auto found = object.find(std::string(name));
  if (found == object.end() || !found->is_string()) return "";
  return found->get<std::string>();
}

}  // namespace attendant
