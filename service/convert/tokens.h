// Opaque tokens in replies, as base64url text.
#ifndef ATTENDANT_SERVICE_CONVERT_TOKENS_H_
#define ATTENDANT_SERVICE_CONVERT_TOKENS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Returns the token for a state of a catalog; sequence >= 0.
std::string StateToken(absl::string_view catalog_uid, std::int64_t sequence);

// The state of a catalog after the write with number `sequence`.
struct CatalogState {
  std::string catalog_uid;
  std::int64_t sequence = 0;
};

// Returns what a token stands for. InvalidArgument naming `field` if it is
// invalid.
absl::StatusOr<CatalogState> ParseStateToken(absl::string_view token,
                                             absl::string_view field);

// Returns the token for the page that begins after the entry `after` of
// `listing`, any bytes that distinguish requests whose pages must not be mixed.
// The token holds a hash of them.
std::string PageToken(absl::string_view listing, absl::string_view after);

// Returns the `after` of a token, or "" for an empty token. InvalidArgument
// naming "page_token" if it is not a token of this listing.
absl::StatusOr<std::string> ParsePageToken(absl::string_view token,
                                           absl::string_view listing);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_TOKENS_H_
