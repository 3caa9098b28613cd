// TLS and tokens of the HTTP port: the rules of the gRPC port, except for
// probes.
#ifndef ATTENDANT_SERVICE_HTTP_HTTP_SECURITY_H_
#define ATTENDANT_SERVICE_HTTP_HTTP_SECURITY_H_

#include "absl/status/status.h"
#include "service/http/http_server.h"
#include "service/security/openssl.h"
#include "service/security/security.h"
#include "service/security/tls_reloader.h"

namespace attendant {

using TlsContext = Owned<SSL_CTX>;

// Returns a TLS context that uses the certificate of `reloader`, which must
// outlive it, and requests client certificates if `reloader` wants them: an
// invalid one fails the handshake, a missing one does not. Null if `reloader`
// is null.
TlsContext MakeTlsContext(TlsReloader* reloader);

// OK if the caller may see pages that cover all catalogs: it has presented a
// certificate, if clients need one, and has a token that may read every
// catalog, if tokens are required. Otherwise Unauthenticated or
// PermissionDenied.
absl::Status CheckMayReadAll(const Security& security,
                             const HttpRequest& request);
// True if CheckMayReadAll would return OK; counts no refusal.
bool MayReadAll(const Security& security, const HttpRequest& request);

// Returns 401 or 403 for an error of CheckMayReadAll.
HttpResponse RefusalResponse(const absl::Status& error);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HTTP_HTTP_SECURITY_H_
