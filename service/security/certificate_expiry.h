// Warnings about a certificate that is about to expire.
#ifndef ATTENDANT_SERVICE_SECURITY_CERTIFICATE_EXPIRY_H_
#define ATTENDANT_SERVICE_SECURITY_CERTIFICATE_EXPIRY_H_

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace attendant {

// Leaves ample time for renewal.
inline constexpr absl::Duration kExpiryNotice = absl::Hours(14 * 24);

// Returns a warning about a TLS certificate that expires at `expiry`; nothing
// if that is kExpiryNotice or more after `now`.
std::optional<std::string> ExpiryWarning(absl::Time expiry, absl::Time now);

// Warns once a day, and again at once for a different certificate. Not
// thread-safe.
class ExpiryReminder {
 public:
  // Returns ExpiryWarning if a warning is due. `now` may decrease.
  std::optional<std::string> Due(absl::Time expiry, absl::Time now) const;
  // Call once a warning that was due has been given.
  void Told(absl::Time expiry, absl::Time now);

 private:
  absl::Time told_expiry_ = absl::InfiniteFuture();
  absl::Time told_ = absl::InfinitePast();
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_CERTIFICATE_EXPIRY_H_
