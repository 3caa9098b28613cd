// Checks the bearer tokens of calls against a file of salted hashes.
#ifndef ATTENDANT_SERVICE_SECURITY_AUTHENTICATOR_H_
#define ATTENDANT_SERVICE_SECURITY_AUTHENTICATOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/published.h"
#include "service/metrics/instruments.h"
#include "service/security/access.h"
#include "service/security/token_table.h"
#include "service/security/watched_files.h"

namespace attendant {

// Why a caller was refused.
enum class AuthRefusal {
  kNoToken,
  kUnknownToken,
  kRoleTooLow,
  kCatalogNotAllowed,
  kNotForAll,  // at /metrics: the token permits only some catalogs
  kCount
};

// Thread-safe. `header` is the value of the header "authorization", empty if
// absent: "Bearer NAME.SECRET" (RFC 6750).
//
// Before a check the file is examined again, at most every kLookInterval. A
// file that can't be read, is malformed or was written meanwhile changes
// nothing, and is logged once.
class Authenticator {
 public:
  static constexpr absl::Duration kLookInterval = absl::Milliseconds(500);

  // Reads the file (token_table.h) at `path`. With `anonymous_read`, calls
  // without a token have the role kRead in every catalog. Errors are those of
  // ReadSmallFile and TokenTable::FromText, with the path.
  static absl::StatusOr<std::unique_ptr<Authenticator>> Open(
      const std::string& path, bool anonymous_read);

  // OK if the caller has the role `needed`. Unauthenticated without a token or
  // with one that is not in the file; PermissionDenied if its role is too low.
  absl::Status CheckRole(Role needed, absl::string_view header);
  // Like CheckRole above, for a result of GrantOf.
  absl::Status CheckRole(Role needed, const Grant& grant);

  // Examines the file now. OK if its content is now in use; otherwise the
  // reason.
  absl::Status Reload();

  // Refusals counted by CheckRole and with CountRefusal.
  const CounterFor<AuthRefusal>& refusals() const { return refusals_; }
  void CountRefusal(AuthRefusal refusal) { refusals_[refusal].Add(); }

  // Returns what a caller may do; null if it has no token or one that was
  // revoked.
  std::shared_ptr<const Grant> GrantOf(absl::string_view header);

 private:
  Authenticator(const std::string& path, bool anonymous_read,
                WatchedFiles files, TokenTable table);

  void ReloadIfChanged();

  const std::string path_;
  const bool anonymous_read_;
  std::atomic<SteadyTime> next_look_;
  Published<TokenTable> table_;
  CounterFor<AuthRefusal> refusals_;
  Mutex mutex_;
  WatchedFiles files_ ABSL_GUARDED_BY(mutex_);
  absl::Status last_failure_
      ABSL_GUARDED_BY(mutex_);  // of reading the file; or OK
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_AUTHENTICATOR_H_
