// The TLS certificate that a server shows.
#ifndef ATTENDANT_CLIENT_DOCTOR_CERTIFICATE_H_
#define ATTENDANT_CLIENT_DOCTOR_CERTIFICATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/doctor/finding.h"

namespace attendant {

// When the certificate of the server at HOST:PORT ends, whoever signed it, also
// if it is refused for that or asks for one of the client's. Unavailable if
// none is shown within some seconds.
absl::StatusOr<absl::Time> CertificateExpiry(const std::string& address);

// A warning from 14 days before `expiry` on, a failure after it.
Finding ExamineExpiry(absl::Time expiry, absl::Time now);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_CERTIFICATE_H_
