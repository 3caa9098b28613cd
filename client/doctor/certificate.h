// Examines the TLS certificate that a server shows.
#ifndef ATTENDANT_CLIENT_DOCTOR_CERTIFICATE_H_
#define ATTENDANT_CLIENT_DOCTOR_CERTIFICATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/doctor/finding.h"

namespace attendant {

// Returns when the certificate of the server at HOST:PORT expires. Does not
// verify the certificate, and works with a server that asks for a client's
// certificate. Unavailable if none is shown within some seconds.
absl::StatusOr<absl::Time> CertificateExpiry(const std::string& address);

// Returns a warning from 14 days before `expiry` on, a failure after it.
Finding ExamineExpiry(absl::Time expiry, absl::Time now);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_CERTIFICATE_H_
