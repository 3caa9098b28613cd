// Security of a process's ports: TLS, tokens, or neither.
#ifndef ATTENDANT_SERVICE_SECURITY_SECURITY_H_
#define ATTENDANT_SERVICE_SECURITY_SECURITY_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "service/metrics/metric_page.h"
#include "service/security/authenticator.h"
#include "service/security/refusal_log.h"
#include "service/security/tls_files.h"
#include "service/security/tls_reloader.h"

namespace attendant {

struct SecurityOptions {
  TlsPaths tls = {};
  // Path of a file as in token_table.h; empty: anyone who can connect may do
  // everything.
  std::string token_path = "";
  // Calls without a token may read.
  bool anonymous_read = false;
  // Allows listening without TLS where other machines can connect.
  bool plaintext_on_network = false;
};

// True if only this machine can connect to `host`: localhost, 127.0.0.0/8 and
// ::1, with or without brackets.
bool IsLoopback(absl::string_view host);

// OK if a port on `host` may be opened with `options`. InvalidArgument naming
// the option: TLS files that are missing; on a host other than loopback without
// TLS, tokens are given or plaintext_on_network is not set; anonymous_read
// without tokens. `field` is the name of the option that gives the host.
absl::Status ValidateSecurity(const SecurityOptions& options,
                              absl::string_view host,
                              absl::string_view field = "listen");

// The certificate and the tokens, shared by all ports. Thread-safe.
class Security {
 public:
  // Reads the files. Errors are those of TlsReloader and Authenticator.
  static absl::StatusOr<std::shared_ptr<Security>> Open(
      const SecurityOptions& options);

  TlsReloader* tls() const { return tls_.get(); }  // null: no TLS
  // Null: no tokens are required.
  Authenticator* authenticator() const { return authenticator_.get(); }

  // Shared by all ports.
  RefusalLog& refusal_log() { return refusal_log_; }

  // Examines all files now rather than at the next handshake or call. OK if
  // their contents are now in use; otherwise the first error, and what was read
  // before remains in use.
  absl::Status Reload();

  // Returns the expiry time of the certificate; InfiniteFuture without TLS.
  // Examines the files.
  absl::Time expiry() const;

  // Writes attendant_tls_certificate_expiry_seconds and
  // attendant_auth_refused_total.
  void WriteMetrics(MetricPage& page) const;

 private:
  Security(std::unique_ptr<TlsReloader> tls,
           std::unique_ptr<Authenticator> authenticator);

  const std::unique_ptr<TlsReloader> tls_;
  const std::unique_ptr<Authenticator> authenticator_;
  RefusalLog refusal_log_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_SECURITY_H_
