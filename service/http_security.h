// TLS and tokens of the HTTP port: the rules of the gRPC port.
#ifndef ATTENDANT_SERVICE_HTTP_SECURITY_H_
#define ATTENDANT_SERVICE_HTTP_SECURITY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "service/authenticator.h"
#include "service/tls_reloader.h"

namespace httplib {
struct Request;
struct Response;
class Server;
}  // namespace httplib

namespace attendant {

// A server that speaks TLS by the certificate of `reloader`, which must outlive
// it, and asks clients for theirs where that wants them; null: plain HTTP.
std::unique_ptr<httplib::Server> MakeHttpServer(TlsReloader* reloader);

// True if the caller may see what tells of all catalogs: it has a token to read
// every one of them, or `authenticator` is null. Else the response is made 401
// or 403.
bool MayReadAll(Authenticator* authenticator, const httplib::Request& request,
                httplib::Response& response);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HTTP_SECURITY_H_
