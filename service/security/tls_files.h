// The PEM files of a server's TLS.
#ifndef ATTENDANT_SERVICE_SECURITY_TLS_FILES_H_
#define ATTENDANT_SERVICE_SECURITY_TLS_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace attendant {

struct TlsPaths {
  // The server's certificate, followed by the intermediate certificates up to
  // the CA; empty: no TLS.
  std::string certificate = "";
  std::string key = "";
  // CA certificates, one of which must have signed a client's certificate;
  // empty: clients need none.
  std::string client_ca = "";
};

// The contents of the files, as PEM.
struct TlsMaterial {
  std::string certificate;
  std::string key;
  std::string client_ca;
  absl::Time expiry;  // of the server's certificate
};

// Reads and checks the files. InvalidArgument, naming the file, if one is
// invalid or the key does not match the certificate; otherwise errors of
// ReadSmallFile. An expired certificate is not an error: its owner may want to
// see how clients react.
absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsPaths& paths);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_TLS_FILES_H_
