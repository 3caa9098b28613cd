#include "client/doctor/server.h"

#include <httplib.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "attendant/v1/catalog_service.pb.h"
#include "client/api/advice.h"
#include "client/api/pages.h"
#include "client/doctor/certificate.h"
#include "client/doctor/open_files.h"
#include "client/format/text.h"
#include "core/base/clock.h"
#include "core/base/host_port.h"

namespace attendant {
namespace {

constexpr time_t kPagePatienceSeconds = 5;
constexpr int kPageSize = 1000;
constexpr char kTokenAdvice[] =
    "give a token for all catalogs with --auth-token-file, and a certificate "
    "with --client-cert where the server wants one";

// By host and port: of a URL the library takes no IPv6 address.
std::unique_ptr<httplib::ClientImpl> HttpClient(const ServerToExamine& server) {
  const ClientSecurity& security = server.security;
  const std::string host = BareHostOf(server.http);
  const int port = PortOf(server.http);
  if (security.ca_path.empty()) {
    return std::make_unique<httplib::ClientImpl>(host, port);
  }
  auto client = std::make_unique<httplib::SSLClient>(
      host, port, security.certificate_path, security.key_path);
  client->set_ca_cert_path(security.ca_path.c_str());
  client->enable_server_certificate_verification(true);
  return client;
}

// A page, whatever its status; no result if there is no answer. `token` may be
// empty.
httplib::Result Get(const ServerToExamine& server, const std::string& path,
                    const std::string& token = "") {
  const std::unique_ptr<httplib::ClientImpl> client = HttpClient(server);
  client->set_connection_timeout(kPagePatienceSeconds);
  client->set_read_timeout(kPagePatienceSeconds);
  httplib::Headers headers;
  if (!token.empty()) {
    headers.emplace("Authorization", absl::StrCat("Bearer ", token));
  }
  return client->Get(path, headers);
}

// Where no page came.
Finding Unreachable(const std::string& address, httplib::Error error) {
  Finding finding = {
      "HTTP port", Verdict::kWarning,
      absl::StrCat(address, " can't be reached: "),
      "say where it is with --http; attendantd --http-listen opens it"};
  if (error == httplib::Error::SSLConnection ||
      error == httplib::Error::SSLServerVerification) {
    finding.text += "no TLS connection that both sides trust";
    finding.advice =
        "see that its certificate has not expired, is of the authority in "
        "--ca and has that name; where it speaks no TLS leave --ca out, and "
        "where it asks for a certificate give --client-cert and --client-key";
  } else {
    finding.text += error == httplib::Error::Connection
                        ? "no connection"
                        : httplib::to_string(error);
  }
  return finding;
}

// As the server begins its warnings of a certificate that ends: ExpiryWarning.
constexpr absl::string_view kOfCertificate = "the TLS certificate ";

// `certificate_told`: what it warns of there is known.
Finding ExamineReadiness(const ServerToExamine& server, bool certificate_told) {
  const httplib::Result page = Get(server, "/readyz");
  if (!page) return Unreachable(server.http, page.error());
  const auto json = nlohmann::json::parse(page->body, nullptr, false);
  std::string text;
  bool only_certificate = true;
  if (json.is_object()) {
    for (const char* list : {"reasons", "warnings"}) {
      if (!json.contains(list)) continue;
      for (const auto& line : json[list]) {
        if (!line.is_string()) continue;
        const auto& said = line.get_ref<const std::string&>();
        const bool of_certificate = absl::StartsWith(said, kOfCertificate);
        if (of_certificate && certificate_told) continue;
        only_certificate = only_certificate && of_certificate;
        absl::StrAppend(&text, text.empty() ? "" : "; ", said);
      }
    }
  }
  if (page->status != 200) {
    return {"HTTP port", Verdict::kFailure,
            absl::StrCat("not ready (", page->status,
                         "): ", text.empty() ? page->body : text),
            "wait until it is ready, and see the log if it stays so"};
  }
  if (!text.empty()) {
    return {"HTTP port", Verdict::kWarning, absl::StrCat("ready, but ", text),
            only_certificate ? "see docs/operations.md, TLS"
                             : "see docs/errors.md"};
  }
  return {.subject = "HTTP port", .text = absl::StrCat(server.http, ", ready")};
}

// The value of a label of attendant_build_info.
std::optional<std::string> BuildLabel(const std::string& page,
                                      const std::string& label) {
  const std::regex pattern("attendant_build_info\\{[^}]*\\b" + label +
                           "=\"([^\"]*)\"");
  std::smatch match;
  if (!std::regex_search(page, match, pattern)) return std::nullopt;
  return match[1].str();
}

// `reached`: by gRPC.
httplib::Result GetMetrics(const ServerToExamine& server, bool reached) {
  // gRPC sends a token without TLS to this machine only: where it has got
  // through, HTTP may follow.
  const bool may_see_token =
      !server.security.ca_path.empty() ||
      (reached && (HostOf(server.http) == HostOf(server.server) ||
                   server.http == DefaultHttpAddress(server.server)));
  return Get(server, "/metrics",
             may_see_token ? server.security.token : std::string());
}

// Nothing where the HTTP port is not that of attendantd.
std::optional<Finding> ExamineBuild(const httplib::Result& page) {
  if (!page) return std::nullopt;
  if (page->status == 401 || page->status == 403) {
    return Finding{
        "build", Verdict::kWarning,
        absl::StrCat("not known, as /metrics answers ", page->status),
        kTokenAdvice};
  }
  if (page->status != 200) return std::nullopt;
  const auto version = BuildLabel(page->body, "version");
  if (!version.has_value()) return std::nullopt;
  Finding finding = {
      .subject = "build",
      .text = absl::StrCat(
          "attendantd ", *version, ", kernels ",
          BuildLabel(page->body, "kernels").value_or("unknown"), ", FAISS ",
          BuildLabel(page->body, "faiss").value_or("unknown"), ", RocksDB ",
          BuildLabel(page->body, "rocksdb").value_or("unknown"))};
  if (*version != ATTENDANT_VERSION) {
    finding.verdict = Verdict::kWarning;
    finding.advice = absl::StrCat("this program is ", ATTENDANT_VERSION,
                                  ": install the same version of both");
  }
  return finding;
}

// The value of a metric without labels.
std::optional<double> MetricOf(const std::string& page,
                               const std::string& name) {
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    double value = 0;
    if (absl::ConsumePrefix(&line, name + " ") &&
        absl::SimpleAtod(line, &value)) {
      return value;
    }
  }
  return std::nullopt;
}

// Nothing where the server does not tell.
std::optional<Finding> ExamineServersOpenFiles(const httplib::Result& page) {
  if (!page || page->status != 200) return std::nullopt;
  const auto limit = MetricOf(page->body, "process_max_fds");
  if (!limit.has_value()) return std::nullopt;
  return OpenFilesOf(*limit, MetricOf(page->body, "process_open_fds"));
}

void ExamineCatalogs(Client& client, std::vector<Finding>& findings) {
  v1::ListCatalogsRequest request;
  request.set_page_size(kPageSize);
  const SteadyTime begin = SteadyNow();
  const auto list = AllPages(client, &Client::ListCatalogs, request);
  const absl::Duration time = TimeSince(begin);
  if (!list.ok()) {
    const bool refused = absl::IsUnauthenticated(list.status()) ||
                         absl::IsPermissionDenied(list.status());
    findings.push_back({"catalogs", Verdict::kFailure,
                        std::string(list.status().message()),
                        refused ? kTokenAdvice : "see docs/errors.md"});
    return;
  }
  std::int64_t item_count = 0;
  for (const v1::Catalog& catalog : list->catalogs()) {
    item_count += catalog.item_count();
  }
  findings.push_back(
      {.subject = "catalogs",
       .text = absl::StrCat(
           FormatCount(list->catalogs_size()), " with ",
           FormatCount(item_count), " items, listed in ",
           absl::StrFormat("%.3g ms", absl::ToDoubleMilliseconds(time)))});
  for (const v1::Catalog& catalog : list->damaged_catalogs()) {
    for (const std::string& warning : catalog.warnings()) {
      findings.push_back(
          {absl::StrCat("catalog ", catalog.name()), Verdict::kFailure, warning,
           "give files without rights back to the server's user and restart "
           "it; else restore the catalog from a snapshot or backup, or delete "
           "it"});
    }
  }
  for (const v1::Catalog& catalog : list->catalogs()) {
    for (const std::string& complaint : catalog.warnings()) {
      findings.push_back({absl::StrCat("catalog ", catalog.name()),
                          Verdict::kWarning, complaint,
                          absl::StrCat("attendant catalog describe ",
                                       catalog.name(), " tells more")});
    }
  }
}

}  // namespace

std::string DefaultHttpAddress(const std::string& server) {
  const int port = PortOf(server);
  if (port == 0) return "";
  // Where it listens by default, whichever loopback gRPC has.
  if (HostOf(server) == "[::1]") {
    return absl::StrCat("127.0.0.1:", port + kHttpPortOffset);
  }
  return WithPort(server, port + kHttpPortOffset);
}

std::vector<Finding> ExamineServer(const ServerToExamine& server) {
  std::vector<Finding> findings;
  const auto client = server.connect();
  if (client.ok()) {
    findings.push_back(
        {.subject = "gRPC", .text = absl::StrCat(server.server, ", reached")});
  } else {
    findings.push_back({"gRPC", Verdict::kFailure,
                        std::string(client.status().message()),
                        AdviceOn(client.status())});
  }
  bool certificate_told = false;
  if (!server.security.ca_path.empty()) {
    const auto expiry = CertificateExpiry(server.server);
    certificate_told = expiry.ok();
    if (expiry.ok()) findings.push_back(ExamineExpiry(*expiry, absl::Now()));
  }
  findings.push_back(ExamineReadiness(server, certificate_told));
  const httplib::Result metrics = GetMetrics(server, client.ok());
  if (auto build = ExamineBuild(metrics)) {
    findings.push_back(*std::move(build));
  }
  if (auto open_files = ExamineServersOpenFiles(metrics)) {
    findings.push_back(*std::move(open_files));
  }
  if (client.ok()) ExamineCatalogs(**client, findings);
  return findings;
}

}  // namespace attendant
