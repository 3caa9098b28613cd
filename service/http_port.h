// The HTTP port beside the gRPC one: /livez, /readyz and /metrics.
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

// Answers from its start on, while catalogs are still being opened: /livez is
// 200 as long as the process answers; /readyz is 200 once there is a server
// that takes requests, and else 503, with the reasons; /metrics is that of the
// process, and of the server once there is one. Thread-safe.
class HttpPort {
 public:
  struct Options {
    // HOST:PORT; port 0 takes a free one.
    std::string listen = "127.0.0.1:8600";
    // As of the gRPC port. /livez and /readyz ask for no token and no client
    // certificate.
    SecurityOptions security = {};
  };

  // Listens. `security` is what the options open, shared with other ports;
  // null: one of its own. InvalidArgument naming "http-listen" or another
  // option; errors of reading the files of options.security; Unavailable if the
  // address can't be bound.
  static absl::StatusOr<std::unique_ptr<HttpPort>> Start(
      const Options& options, std::shared_ptr<Security> security = nullptr);

  int port() const { return http_->port(); }

  // What the pages tell of from now on, which must outlive this object.
  void Show(const Server& server) { server_.store(&server); }

 private:
  explicit HttpPort(std::shared_ptr<Security> security);

  HttpResponse Answer(const HttpRequest& request) const;
  HttpResponse Ready(const HttpRequest& request) const;
  HttpResponse Metrics() const;

  const std::shared_ptr<Security> security_;
  const TlsContext tls_;  // of security_
  std::atomic<const Server*> server_ = nullptr;
  // Last: it ends first.
  std::unique_ptr<HttpServer> http_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HTTP_PORT_H_
