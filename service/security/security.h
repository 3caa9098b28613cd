// What secures the ports of a process: TLS, tokens, or neither.
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
  // File of token_table.h; empty: whoever can connect may do everything.
  std::string token_path = "";
  // Calls without a token may read.
  bool anonymous_read = false;
  // Listening without TLS where others than this machine may connect.
  bool plaintext_on_network = false;
};

// True if only this machine can connect to `host`: localhost, 127.0.0.0/8 and
// ::1, with or without brackets.
bool IsLoopback(absl::string_view host);

// OK if a port of `host` may be opened so. InvalidArgument naming the option:
// parts of TLS that are missing; tokens, or no plaintext_on_network, without
// TLS on another host than loopback; anonymous_read without tokens. `field` is
// the name of the option that names the host.
absl::Status ValidateSecurity(const SecurityOptions& options,
                              absl::string_view host,
                              absl::string_view field = "listen");

// The certificate and the tokens, one of each for all ports. Thread-safe.
class Security {
 public:
  // Reads the files. Errors are those of TlsReloader and Authenticator.
  static absl::StatusOr<std::shared_ptr<Security>> Open(
      const SecurityOptions& options);

  TlsReloader* tls() const { return tls_.get(); }  // null: no TLS
  // Null: no tokens are asked for.
  Authenticator* authenticator() const { return authenticator_.get(); }

  // Of all ports.
  RefusalLog& refusal_log() { return refusal_log_; }

  // Looks at all files now, not at the next handshake or call. OK if they are
  // what is in use; else why the first is not, and what was read before it
  // stays in use.
  absl::Status Reload();

  // When the certificate ends; InfiniteFuture without TLS. Looks at its files.
  absl::Time expiry() const;

  // attendant_tls_certificate_expiry_seconds and attendant_auth_refused_total.
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
