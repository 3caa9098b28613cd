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

// Connects by host and port, since the library parses no IPv6 address in a URL.
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

// Gets a page, whatever its status; no result if there is no answer. `token`
// may be empty.
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

// The finding about an HTTP port that sent no page.
Finding Unreachable(const std::string& address, httplib::Error error,
                    bool by_tls) {
  Finding finding = {
      "HTTP port", Verdict::kWarning,
      absl::StrCat(address, " can't be reached: "),
      "name it with --http HOST:PORT; attendantd --http-listen opens it"};
  if (error == httplib::Error::SSLConnection ||
      error == httplib::Error::SSLServerVerification) {
    finding.text += "no TLS connection that both sides trust";
    finding.advice =
        "check that its certificate has not expired, is issued by the "
        "authority in --ca and has that name; leave --ca out if the server has "
        "no TLS; give --client-cert and --client-key if it asks for them";
  } else if (error == httplib::Error::Read && !by_tls) {
    // A TLS server closes a connection that speaks HTTP to it.
    finding.text += "it takes connections but does not answer HTTP";
    finding.advice =
        "give --ca FILE if the server has TLS; otherwise name its HTTP port "
        "with --http";
  } else {
    finding.text += error == httplib::Error::Connection
                        ? "no connection"
                        : httplib::to_string(error);
  }
  return finding;
}

// The start of a server's warning that its certificate expires (ExpiryWarning).
constexpr absl::string_view kOfCertificate = "the TLS certificate ";

constexpr char kMemoryAdvice[] =
    "delete catalogs or items, or raise attendantd --memory-limit";

// Returns true if the server warns that its memory is full.
bool IsOfMemory(absl::string_view warning) {
  return absl::StartsWith(warning, "memory: ") ||
         absl::StrContains(warning, "memory is full: ");
}

// Returns a warning about memory with its numbers of bytes in larger units.
std::string WithUnits(const std::string& warning) {
  static const std::regex pattern("\\b([0-9]{4,18})\\b( bytes)?");
  std::string text;
  auto rest = warning.cbegin();
  for (std::sregex_iterator match(warning.begin(), warning.end(), pattern);
       match != std::sregex_iterator(); ++match) {
    std::int64_t bytes = 0;
    if (!absl::SimpleAtoi((*match)[1].str(), &bytes)) continue;
    absl::StrAppend(&text, std::string(rest, (*match)[0].first),
                    FormatBytes(bytes));
    rest = (*match)[0].second;
  }
  return text + std::string(rest, warning.cend());
}

// `certificate_told` is true if the certificate's expiry is reported already,
// so that the server's warning of it is left out.
Finding ExamineReadiness(const ServerToExamine& server, bool certificate_told) {
  const httplib::Result page = Get(server, "/readyz");
  if (!page) {
    return Unreachable(server.http, page.error(),
                       !server.security.ca_path.empty());
  }
  const auto json = nlohmann::json::parse(page->body, nullptr, false);
  std::string text;
  bool only_certificate = true;
  bool memory_is_full = false;
  if (json.is_object()) {
    for (const char* list : {"reasons", "warnings"}) {
      if (!json.contains(list)) continue;
      for (const auto& line : json[list]) {
        if (!line.is_string()) continue;
        const auto& said = line.get_ref<const std::string&>();
        const bool of_certificate = absl::StartsWith(said, kOfCertificate);
        if (of_certificate && certificate_told) continue;
        only_certificate = only_certificate && of_certificate;
        memory_is_full = memory_is_full || IsOfMemory(said);
        absl::StrAppend(&text, text.empty() ? "" : "; ",
                        IsOfMemory(said) ? WithUnits(said) : said);
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
            : memory_is_full ? kMemoryAdvice
                             : "see docs/errors.md"};
  }
  return {.subject = "HTTP port", .text = absl::StrCat(server.http, ", ready")};
}

// Returns the value of a label of attendant_build_info.
std::optional<std::string> BuildLabel(const std::string& page,
                                      const std::string& label) {
  const std::regex pattern("attendant_build_info\\{[^}]*\\b" + label +
                           "=\"([^\"]*)\"");
  std::smatch match;
  if (!std::regex_search(page, match, pattern)) return std::nullopt;
  return match[1].str();
}

// `reached` is true if the server was reached by gRPC.
httplib::Result GetMetrics(const ServerToExamine& server, bool reached) {
  // Without TLS gRPC sends a token to this machine only. If gRPC got through,
  // so may HTTP to the same host.
  const bool may_see_token =
      !server.security.ca_path.empty() ||
      (reached && (HostOf(server.http) == HostOf(server.server) ||
                   server.http == DefaultHttpAddress(server.server)));
  return Get(server, "/metrics",
             may_see_token ? server.security.token : std::string());
}

// Returns nothing if the HTTP port is not that of attendantd.
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

// Returns the value of a metric without labels.
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

// Returns nothing if the server does not report it.
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
           FormatCount(item_count), item_count == 1 ? " item" : " items",
           ", listed in ",
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
    for (const std::string& warning : catalog.warnings()) {
      Finding finding = {absl::StrCat("catalog ", catalog.name()),
                         Verdict::kWarning, warning,
                         absl::StrCat("attendant catalog describe ",
                                      catalog.name(), " tells more")};
      if (IsOfMemory(warning)) {
        finding.text = WithUnits(warning);
        finding.advice = kMemoryAdvice;
      }
      findings.push_back(std::move(finding));
    }
  }
}

}  // namespace

std::string DefaultHttpAddress(const std::string& server) {
  const int port = PortOf(server);
  if (port == 0) return "";
  // HTTP listens there by default, whichever loopback gRPC has.
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
