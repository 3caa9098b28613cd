// The HTTP port next to the gRPC port: /livez, /readyz and /metrics.
#ifndef ATTENDANT_SERVICE_HTTP_PORT_H_
#define ATTENDANT_SERVICE_HTTP_PORT_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "service/http/http_security.h"
#include "service/http/http_server.h"
#include "service/security/security.h"

namespace attendant {

class Server;

// Answers from the start, even while catalogs are being opened. /livez returns
// 200 as long as the process responds; /readyz returns 200 once there is a
// server that accepts requests, and until then 503 with the reasons; /metrics
// returns the metrics of the process, and of the server once there is one.
// Thread-safe.
class HttpPort {
 public:
  struct Options {
    // HOST:PORT; port 0 picks a free port.
    std::string listen = "127.0.0.1:8600";
    // The same as for the gRPC port. /livez and /readyz require no token and no
    // client certificate.
    SecurityOptions security = {};
  };

  // Starts to listen. `security` was opened with options.security and may be
  // shared with other ports; null: opens its own. InvalidArgument naming
  // "http-listen" or another option; errors of reading the files of
  // options.security; Unavailable if the address can't be bound.
  static absl::StatusOr<std::unique_ptr<HttpPort>> Start(
      const Options& options, std::shared_ptr<Security> security = nullptr);

  int port() const { return http_->port(); }

  // Makes the pages report on `server` from now on; it must outlive this
  // object.
  void Show(const Server& server) { server_.store(&server); }

 private:
  explicit HttpPort(std::shared_ptr<Security> security);

  HttpResponse Answer(const HttpRequest& request) const;
  HttpResponse Ready(const HttpRequest& request) const;
  HttpResponse Metrics() const;

  const std::shared_ptr<Security> security_;
  const TlsContext tls_;  // uses security_
  std::atomic<const Server*> server_ = nullptr;
  // Last member, so that it is destroyed first.
  std::unique_ptr<HttpServer> http_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HTTP_PORT_H_
