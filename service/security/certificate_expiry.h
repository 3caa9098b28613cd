// A certificate that ends soon, in words.
#ifndef ATTENDANT_SERVICE_SECURITY_CERTIFICATE_EXPIRY_H_
#define ATTENDANT_SERVICE_SECURITY_CERTIFICATE_EXPIRY_H_

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace attendant {

// Long enough to renew it in peace.
inline constexpr absl::Duration kExpiryNotice = absl::Hours(14 * 24);

// What to say of a TLS certificate that ends at `expiry`; nothing if that is
// kExpiryNotice or more after `now`.
std::optional<std::string> ExpiryWarning(absl::Time expiry, absl::Time now);

// Says it once a day, and anew of another certificate. Not thread-safe.
class ExpiryReminder {
 public:
  // ExpiryWarning, where it is due. `now` may go back.
  std::optional<std::string> Due(absl::Time expiry, absl::Time now);

 private:
  absl::Time told_expiry_ = absl::InfiniteFuture();
  absl::Time told_ = absl::InfinitePast();
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_CERTIFICATE_EXPIRY_H_
