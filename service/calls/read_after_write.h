// Reads that must see a write: what a token in a request asks for.
#ifndef ATTENDANT_SERVICE_CALLS_READ_AFTER_WRITE_H_
#define ATTENDANT_SERVICE_CALLS_READ_AFTER_WRITE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/catalog/live/live_catalog.h"
#include "service/calls/backend.h"

namespace attendant {

// How long a call without a deadline waits for what its token stands for.
inline constexpr absl::Duration kDefaultTokenWait = absl::Seconds(5);

// OK if a snapshot that is taken of `catalog` from now on holds what `token`
// stands for; always if it is empty. Takes no lock. InvalidArgument naming
// `field` for what is no token; FailedPrecondition with reason OTHER_CATALOG;
// OutOfRange with reason BEYOND_LAST_WRITE; and for a write that is assigned
// but not visible a status of which IsNotVisibleYet is true.
absl::Status CheckVisible(const LiveCatalog& catalog, absl::string_view token,
                          absl::string_view field);

// True of CheckVisible's DeadlineExceeded with reason WRITE_NOT_VISIBLE. It is
// the answer of a call that has waited long enough; until then the call may be
// tried again.
bool IsNotVisibleYet(const absl::Status& status);

// FindCatalog, and then CheckVisible of a token in the field state_token.
absl::StatusOr<std::shared_ptr<LiveCatalog>> FindCatalogShowing(
    const Backend& backend, absl::string_view name, absl::string_view field,
    absl::string_view token, absl::string_view token_field = "state_token");

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_READ_AFTER_WRITE_H_
