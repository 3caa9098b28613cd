// The PEM files of a server's TLS.
#ifndef ATTENDANT_SERVICE_SECURITY_TLS_FILES_H_
#define ATTENDANT_SERVICE_SECURITY_TLS_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace attendant {

struct TlsPaths {
  // The server's certificate, and those between it and the authority, in this
  // order; empty: no TLS.
  std::string certificate = "";
  std::string key = "";
  // Certificates of authorities, one of which must have signed a client's;
  // empty: clients need none.
  std::string client_ca = "";
};

// What the files hold, as PEM.
struct TlsMaterial {
  std::string certificate;
  std::string key;
  std::string client_ca;
  absl::Time expiry;  // of the server's certificate
};

// Reads and checks the files. InvalidArgument, naming the file, for one that is
// not what it should be, or a key of another certificate; else as
// ReadSmallFile. A certificate that has expired is no error: its owner may want
// to see what clients say.
absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsPaths& paths);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_TLS_FILES_H_
