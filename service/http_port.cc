#include "service/http_port.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/host_port.h"
#include "core/base/status.h"
#include "service/build_metrics.h"
#include "service/connections/listen_address.h"
#include "service/log/log.h"
#include "service/metrics/metric_page.h"
#include "service/metrics/process_metrics.h"
#include "service/readiness.h"
#include "service/security/certificate_expiry.h"
#include "service/server.h"

namespace attendant {
namespace {

constexpr char kJson[] = "application/json";
// Content type of the format that Prometheus expects.
constexpr char kMetricsText[] = "text/plain; version=0.0.4; charset=utf-8";

constexpr int kNotFound = 404;
constexpr int kServiceUnavailable = 503;

constexpr char kIndex[] =
    "attendantd\n"
    "/livez    200 while the process answers\n"
    "/readyz   200 while it takes requests, else 503, with the reasons\n"
    "/metrics  for Prometheus\n";

}  // namespace

HttpPort::HttpPort(std::shared_ptr<Security> security)
    : security_(std::move(security)), tls_(MakeTlsContext(security_->tls())) {}

absl::StatusOr<std::unique_ptr<HttpPort>> HttpPort::Start(
    const Options& options, std::shared_ptr<Security> security) {
  ATTENDANT_RETURN_IF_ERROR(ValidateListen(options.listen, "http-listen"));
  ATTENDANT_RETURN_IF_ERROR(ValidateSecurity(
      options.security, HostOf(options.listen), "http-listen"));
  if (security == nullptr) {
    ATTENDANT_ASSIGN_OR_RETURN(security, Security::Open(options.security));
  }
  std::unique_ptr<HttpPort> made(new HttpPort(std::move(security)));
  ATTENDANT_ASSIGN_OR_RETURN(
      made->http_,
      HttpServer::Start({.listen = options.listen,
                         .handler =
                             [port = made.get()](const HttpRequest& request) {
                               return port->Answer(request);
                             },
                         .tls = made->tls_.get()}));
  return made;
}

HttpResponse HttpPort::Answer(const HttpRequest& request) const {
  if (request.path == "/") return {.body = kIndex};
  if (request.path == "/livez") return {.body = "ok\n"};
  if (request.path == "/readyz") return Ready(request);
  if (request.path == "/metrics") {
    const absl::Status allowed = CheckMayReadAll(*security_, request);
    if (allowed.ok()) return Metrics();
    security_->refusal_log().Note(request.path, allowed);
    return RefusalResponse(allowed);
  }
  return {.status = kNotFound, .body = "no such page; / lists them\n"};
}

HttpResponse HttpPort::Ready(const HttpRequest& request) const {
  const Server* server = server_.load();
  Readiness readiness;
  if (server != nullptr) {
    readiness = server->readiness();
    // Warnings name catalogs, and this page is public.
    const bool may_see = MayReadAll(*security_, request);
    if (!may_see && !readiness.warnings.empty()) {
      readiness.warnings = {absl::StrCat(readiness.warnings.size(),
                                         " for those who may see /metrics")};
    }
  } else {
    readiness.reasons = {"starting: catalogs are being opened"};
  }
  // Not restricted, since anyone who connects sees the certificate.
  if (auto expiry = ExpiryWarning(security_->expiry(), absl::Now())) {
    readiness.warnings.push_back(*std::move(expiry));
  }
  return {.status = readiness.ready() ? 200 : kServiceUnavailable,
          .content_type = kJson,
          .body = ToJson(readiness)};
}

HttpResponse HttpPort::Metrics() const {
  MetricPage page;
  AddBuildMetrics(page);
  AddProcessMetrics(page);
  page.AddCounter("attendant_log_lines_dropped_total",
                  "Log lines dropped because stderr did not accept them.",
                  static_cast<double>(DroppedLogLines()));
  security_->WriteMetrics(page);
  if (const Server* server = server_.load(); server != nullptr) {
    server->WriteMetrics(page);
  }
  return {.content_type = kMetricsText, .body = page.Text()};
}

}  // namespace attendant
