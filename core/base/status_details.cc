#include "core/base/status_details.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/brief.h"

namespace attendant {
namespace {

constexpr absl::string_view kDetailUrl = "attendant/detail/";

}  // namespace

absl::Status WithDetails(
    absl::Status status,
    std::initializer_list<std::pair<absl::string_view, absl::string_view>>
        details) {
  for (const auto& [name, value] : details) {
    if (value.empty()) continue;
    status.SetPayload(absl::StrCat(kDetailUrl, name), absl::Cord(Brief(value)));
  }
  return status;
}

std::map<std::string, std::string> DetailsOf(const absl::Status& status) {
  std::map<std::string, std::string> details;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    if (absl::ConsumePrefix(&url, kDetailUrl)) {
      details.emplace(url, std::string(payload));
    }
  });
  return details;
}

}  // namespace attendant
