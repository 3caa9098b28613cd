// TLS and tokens of the HTTP port: the rules of the gRPC port, but for probes.
#ifndef ATTENDANT_SERVICE_HTTP_HTTP_SECURITY_H_
#define ATTENDANT_SERVICE_HTTP_HTTP_SECURITY_H_

#include "absl/status/status.h"
#include "service/http/http_server.h"
#include "service/security/openssl.h"
#include "service/security/security.h"
#include "service/security/tls_reloader.h"

namespace attendant {

using TlsContext = Owned<SSL_CTX>;

// Speaks TLS by the certificate of `reloader`, which must outlive it, and asks
// clients for theirs where that wants them: a wrong one ends the handshake,
// none does not. Null for null.
TlsContext MakeTlsContext(TlsReloader* reloader);

// OK if the caller may see what tells of all catalogs: it has shown a
// certificate, where clients are to have one, and has a token to read every one
// of them, where there are tokens. Unauthenticated or PermissionDenied
// otherwise.
absl::Status CheckMayReadAll(const Security& security,
                             const HttpRequest& request);
// Whether it would be OK; nobody is counted as refused.
bool MayReadAll(const Security& security, const HttpRequest& request);

// 401 or 403, as such an error says.
HttpResponse RefusalResponse(const absl::Status& error);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HTTP_HTTP_SECURITY_H_
