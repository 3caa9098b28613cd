#include "service/tokens.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// The number is the version of what follows.
constexpr absl::string_view kSnapshotPrefix = "s1\n";
constexpr absl::string_view kPagePrefix = "p1\n";

}  // namespace

std::string SnapshotToken(absl::string_view catalog_uid,
                          std::int64_t sequence) {
  return absl::WebSafeBase64Escape(
      absl::StrCat(kSnapshotPrefix, catalog_uid, "\n", sequence));
}

std::string PageToken(absl::string_view listing, absl::string_view after) {
  return absl::WebSafeBase64Escape(
      absl::StrCat(kPagePrefix, listing, "\n", after));
}

absl::StatusOr<std::string> ParsePageToken(absl::string_view token,
                                           absl::string_view listing) {
  if (token.empty()) return std::string();
  constexpr absl::string_view kWant =
      "the next_page_token of a reply to the same request";
  std::string text;
  if (!absl::WebSafeBase64Unescape(token, &text)) {
    return InvalidField("page_token", "no token of ours", kWant);
  }
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, kPagePrefix)) {
    return InvalidField("page_token", "no token of ours", kWant);
  }
  if (!absl::ConsumePrefix(&rest, absl::StrCat(listing, "\n")) ||
      rest.empty()) {
    return InvalidField("page_token", "the token of another request", kWant);
  }
  return std::string(rest);
}

}  // namespace attendant
