// Read-after-write consistency: waits for the write that a request's token
// names.
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

// How long a call without a deadline waits for the write its token names.
inline constexpr absl::Duration kDefaultTokenWait = absl::Seconds(5);

// OK if a snapshot taken of `catalog` from now on contains the state that
// `token` stands for; always OK for an empty token. Takes no lock.
// InvalidArgument naming `field` for an invalid token; FailedPrecondition with
// reason OTHER_CATALOG; OutOfRange with reason BEYOND_LAST_WRITE; for a write
// that is assigned but not visible, a status for which IsNotVisibleYet is true.
absl::Status CheckVisible(const LiveCatalog& catalog, absl::string_view token,
                          absl::string_view field);

// True for CheckVisible's DeadlineExceeded with reason WRITE_NOT_VISIBLE. The
// call may be retried until it has waited long enough; then this status is its
// answer.
bool IsNotVisibleYet(const absl::Status& status);

// FindCatalog, then CheckVisible for `token` of the field `token_field`.
absl::StatusOr<std::shared_ptr<LiveCatalog>> FindCatalogShowing(
    const Backend& backend, absl::string_view name, absl::string_view field,
    absl::string_view token, absl::string_view token_field = "state_token");

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_READ_AFTER_WRITE_H_
