#include "service/http_port.h"

#include <httplib.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/build_metrics.h"
#include "service/http_security.h"
#include "service/metrics/metric_page.h"
#include "service/metrics/process_metrics.h"
#include "service/readiness.h"
#include "service/server.h"

namespace attendant {
namespace {

// Each serves one connection at a time.
constexpr std::size_t kThreadCount = 4;
// A client that is slower than this, either way, or idle for so long, is left.
constexpr time_t kPatienceSeconds = 5;
// Nothing is sent here.
constexpr std::size_t kMaxRequestBytes = 4096;

constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kJson[] = "application/json";
// What Prometheus asks for.
constexpr char kMetricsText[] = "text/plain; version=0.0.4; charset=utf-8";

constexpr int kServiceUnavailable = 503;

constexpr char kIndex[] =
    "attendantd\n"
    "/livez    200 while the process answers\n"
    "/readyz   200 while it takes requests, else 503, with the reasons\n"
    "/metrics  for Prometheus\n";

// By default two processes could share the port.
void BindAlone(socket_t socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

}  // namespace

HttpPort::HttpPort(std::unique_ptr<TlsReloader> reloader,
                   std::unique_ptr<Authenticator> authenticator)
    : reloader_(std::move(reloader)),
      authenticator_(std::move(authenticator)),
      http_(MakeHttpServer(reloader_.get())) {
  http_->new_task_queue = [] { return new httplib::ThreadPool(kThreadCount); };
  http_->set_socket_options(&BindAlone);
  http_->set_read_timeout(kPatienceSeconds);
  http_->set_write_timeout(kPatienceSeconds);
  http_->set_keep_alive_timeout(kPatienceSeconds);
  http_->set_payload_max_length(kMaxRequestBytes);
  http_->set_tcp_nodelay(true);
  AddPages();
}

absl::StatusOr<std::unique_ptr<HttpPort>> HttpPort::Start(
    const Options& options) {
  ATTENDANT_RETURN_IF_ERROR(ValidateListen(options.listen));
  const std::size_t colon = options.listen.rfind(':');
  std::string host = options.listen.substr(0, colon);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);  // of IPv6
  }
  int port = 0;
  if (!absl::SimpleAtoi(options.listen.substr(colon + 1), &port)) {
    return absl::InternalError("a port that was valid is none");
  }
  const SecurityOptions& security = options.security;
  ATTENDANT_RETURN_IF_ERROR(
      ValidateSecurity(security, HostOf(options.listen), "http-listen"));
  std::unique_ptr<TlsReloader> reloader;
  if (!security.tls.certificate.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(reloader, TlsReloader::Open(security.tls));
  }
  std::unique_ptr<Authenticator> authenticator;
  if (!security.token_path.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        authenticator,
        Authenticator::Open(security.token_path, security.anonymous_read));
  }
  std::unique_ptr<HttpPort> made(
      new HttpPort(std::move(reloader), std::move(authenticator)));
  if (port == 0) {
    made->port_ = made->http_->bind_to_any_port(host);
  } else if (made->http_->bind_to_port(host, port)) {
    made->port_ = port;
  }
  if (made->port_ <= 0) {
    return StatusWithReason(
        absl::StatusCode::kUnavailable,
        absl::StrCat("can't listen on ", options.listen,
                     " for HTTP: another process listens there, or the host "
                     "is not an address of this machine"),
        "CANNOT_LISTEN");
  }
  made->thread_ =
      std::thread([http = made->http_.get()] { http->listen_after_bind(); });
  // A stop before it listens would be lost.
  while (!made->http_->is_running()) std::this_thread::yield();
  return made;
}

HttpPort::~HttpPort() {
  http_->stop();
  if (thread_.joinable()) thread_.join();
}

void HttpPort::AddPages() {
  using httplib::Request;
  using httplib::Response;
  http_->Get("/", [](const Request&, Response& response) {
    response.set_content(kIndex, kText);
  });
  http_->Get("/livez", [](const Request&, Response& response) {
    response.set_content("ok\n", kText);
  });
  http_->Get("/readyz",
             [this](const Request&, Response& response) { Ready(response); });
  http_->Get("/metrics", [this](const Request& request, Response& response) {
    if (MayReadAll(authenticator_.get(), request, response)) {
      Metrics(response);
    }
  });
}

void HttpPort::Ready(httplib::Response& response) const {
  const Server* server = server_.load();
  Readiness readiness;
  if (server != nullptr) {
    readiness = server->readiness();
  } else {
    readiness.reasons = {"starting: catalogs are being opened"};
  }
  if (!readiness.ready()) response.status = kServiceUnavailable;
  response.set_content(ToJson(readiness), kJson);
}

void HttpPort::Metrics(httplib::Response& response) const {
  MetricPage page;
  AddBuildMetrics(page);
  AddProcessMetrics(page);
  if (const Server* server = server_.load(); server != nullptr) {
    server->WriteMetrics(page);
  }
  response.set_content(page.Text(), kMetricsText);
}

}  // namespace attendant
