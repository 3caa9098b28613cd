#include "service/convert/tokens.h"

#include <xxhash.h>

#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::size_t kChecksumBytes = 17;  // 16 hex digits and a line feed

// The number is the version of the format.
constexpr absl::string_view kStatePrefix = "s2\n";
constexpr absl::string_view kPagePrefix = "p3\n";

// Detects tokens that were cut or altered, and stands for a listing in those of
// its pages.
std::string Checksum(absl::string_view bytes) {
  return absl::StrCat(
      absl::Hex(XXH3_64bits(bytes.data(), bytes.size()), absl::kZeroPad16),
      "\n");
}

std::string Seal(absl::string_view prefix, absl::string_view content) {
  return absl::WebSafeBase64Escape(
      absl::StrCat(prefix, Checksum(content), content));
}

// Returns the sealed bytes; nothing if the token is not valid.
std::optional<std::string> Open(absl::string_view token,
                                absl::string_view prefix) {
  std::string text;
  // Base64 has several encodings for some bytes; only the canonical one is
  // accepted.
  if (!absl::WebSafeBase64Unescape(token, &text) ||
      absl::WebSafeBase64Escape(text) != token) {
    return std::nullopt;
  }
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, prefix) || rest.size() <= kChecksumBytes) {
    return std::nullopt;
  }
  const absl::string_view content = rest.substr(kChecksumBytes);
  if (rest.substr(0, kChecksumBytes) != Checksum(content)) return std::nullopt;
  return std::string(content);
}

}  // namespace

std::string StateToken(absl::string_view catalog_uid, std::int64_t sequence) {
  // Cached because queries between two writes have the same token.
  thread_local CatalogState last = {.catalog_uid = "", .sequence = -1};
  thread_local std::string token;
  if (sequence != last.sequence || catalog_uid != last.catalog_uid) {
    token = Seal(kStatePrefix, absl::StrCat(catalog_uid, "\n", sequence));
    last = {.catalog_uid = std::string(catalog_uid), .sequence = sequence};
  }
  return token;
}

absl::StatusOr<CatalogState> ParseStateToken(absl::string_view token,
                                             absl::string_view field) {
  const std::optional<std::string> content = Open(token, kStatePrefix);
  if (content.has_value()) {
    CatalogState state;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(*content, absl::MaxSplits('\n', 1));
    state.catalog_uid = std::string(parts.first);
    if (absl::SimpleAtoi(parts.second, &state.sequence) &&
        state.sequence >= 0) {
      return state;
    }
  }
  return InvalidField(field, "an unknown token", "the state_token of a reply");
}

std::string PageToken(absl::string_view listing, absl::string_view after) {
  return Seal(kPagePrefix, absl::StrCat(Checksum(listing), after));
}

absl::StatusOr<std::string> ParsePageToken(absl::string_view token,
                                           absl::string_view listing) {
  if (token.empty()) return std::string();
  constexpr absl::string_view kWant =
      "the next_page_token of a reply to the same request";
  const std::optional<std::string> content = Open(token, kPagePrefix);
  if (!content.has_value()) {
    return InvalidField("page_token", "an unknown token", kWant);
  }
  absl::string_view rest = *content;
  if (!absl::ConsumePrefix(&rest, Checksum(listing)) || rest.empty()) {
    return InvalidField("page_token", "the token of another request", kWant);
  }
  return std::string(rest);
}

}  // namespace attendant
