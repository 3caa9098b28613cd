#include "service/tokens.h"

#include <xxhash.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::size_t kChecksumBytes = 17;  // 16 hex digits and a line feed

// The number is the version of what follows.
constexpr absl::string_view kSnapshotPrefix = "s1\n";
constexpr absl::string_view kPagePrefix = "p2\n";

// Tells a token that was cut or changed on its way from one of ours.
std::string Checksum(absl::string_view bytes) {
  return absl::StrFormat("%016x\n", XXH3_64bits(bytes.data(), bytes.size()));
}

}  // namespace

std::string SnapshotToken(absl::string_view catalog_uid,
                          std::int64_t sequence) {
  return absl::WebSafeBase64Escape(
      absl::StrCat(kSnapshotPrefix, catalog_uid, "\n", sequence));
}

std::string PageToken(absl::string_view listing, absl::string_view after) {
  const std::string content = absl::StrCat(listing, "\n", after);
  return absl::WebSafeBase64Escape(
      absl::StrCat(kPagePrefix, Checksum(content), content));
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
  // Base64 has several spellings for some bytes: only ours will do.
  const bool ours =
      absl::WebSafeBase64Escape(text) == token &&
      absl::ConsumePrefix(&rest, kPagePrefix) && rest.size() > kChecksumBytes &&
      Checksum(rest.substr(kChecksumBytes)) == rest.substr(0, kChecksumBytes);
  if (!ours) return InvalidField("page_token", "no token of ours", kWant);
  rest.remove_prefix(kChecksumBytes);
  if (!absl::ConsumePrefix(&rest, absl::StrCat(listing, "\n")) ||
      rest.empty()) {
    return InvalidField("page_token", "the token of another request", kWant);
  }
  return std::string(rest);
}

}  // namespace attendant
