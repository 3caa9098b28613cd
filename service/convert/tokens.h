// The opaque tokens that replies carry, as base64url texts.
#ifndef ATTENDANT_SERVICE_CONVERT_TOKENS_H_
#define ATTENDANT_SERVICE_CONVERT_TOKENS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Stands for a state of a catalog; sequence >= 0.
std::string StateToken(absl::string_view catalog_uid, std::int64_t sequence);

// The state of a catalog after its write of this number.
struct CatalogState {
  std::string catalog_uid;
  std::int64_t sequence = 0;
};

// What a token stands for. InvalidArgument naming `field` if it is not one.
absl::StatusOr<CatalogState> ParseStateToken(absl::string_view token,
                                             absl::string_view field);

// Says where the next page begins: after the entry `after` of the listing
// `listing`, a text without line breaks that tells apart requests whose pages
// must not mix.
std::string PageToken(absl::string_view listing, absl::string_view after);

// The `after` of a token, or "" for an empty one. InvalidArgument naming
// "page_token" if it is not a token of this listing.
absl::StatusOr<std::string> ParsePageToken(absl::string_view token,
                                           absl::string_view listing);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_TOKENS_H_
