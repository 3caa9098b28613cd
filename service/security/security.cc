#include "service/security/security.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"

namespace attendant {
namespace {

absl::Status ValidateTls(const TlsPaths& tls) {
  if (tls.certificate.empty() != tls.key.empty()) {
    return InvalidField(tls.key.empty() ? "tls-key" : "tls-cert", "nothing",
                        "a file: a certificate and its key go together");
  }
  if (!tls.client_ca.empty() && tls.certificate.empty()) {
    return InvalidField("tls-client-ca", "a file without a certificate",
                        "tls-cert and tls-key too");
  }
  return absl::OkStatus();
}

}  // namespace

bool IsLoopback(absl::string_view host) {
  if (host == "localhost") return true;
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  const std::string address(host);
  in_addr v4 = {};
  in6_addr v6 = {};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  return inet_pton(AF_INET6, address.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::Status ValidateSecurity(const SecurityOptions& options,
                              absl::string_view host, absl::string_view field) {
  ATTENDANT_RETURN_IF_ERROR(ValidateTls(options.tls));
  if (options.anonymous_read && options.token_path.empty()) {
    return InvalidField(
        "anonymous-read", "true without tokens",
        "auth-tokens too: without it, anyone may do everything");
  }
  if (!options.tls.certificate.empty() || IsLoopback(host)) {
    return absl::OkStatus();
  }
  if (!options.token_path.empty()) {
    return InvalidField("auth-tokens",
                        absl::StrCat("a file, no TLS, and to listen on ", host),
                        "tls-cert and tls-key too, or a loopback address: "
                        "tokens would cross the network unencrypted");
  }
  if (!options.plaintext_on_network) {
    return InvalidField(field, absl::StrCat(host, " without TLS"),
                        "tls-cert and tls-key, a loopback address such as "
                        "127.0.0.1, or plaintext-on-network, which lets anyone "
                        "who can connect read and change everything");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Security>> Security::Open(
    const SecurityOptions& options) {
  std::unique_ptr<TlsReloader> tls;
  if (!options.tls.certificate.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(tls, TlsReloader::Open(options.tls));
  }
  std::unique_ptr<Authenticator> authenticator;
  if (!options.token_path.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        authenticator,
        Authenticator::Open(options.token_path, options.anonymous_read));
  }
  return std::shared_ptr<Security>(
      new Security(std::move(tls), std::move(authenticator)));
}

Security::Security(std::unique_ptr<TlsReloader> tls,
                   std::unique_ptr<Authenticator> authenticator)
    : tls_(std::move(tls)), authenticator_(std::move(authenticator)) {}

absl::Status Security::Reload() {
  absl::Status status;
  if (tls_ != nullptr) status = tls_->Reload();
  if (authenticator_ != nullptr) status.Update(authenticator_->Reload());
  return status;
}

absl::Time Security::expiry() const {
  if (tls_ == nullptr) return absl::InfiniteFuture();
  return tls_->Current(SteadyNow())->expiry;
}

void Security::WriteMetrics(MetricPage& page) const {
  const absl::Time end = expiry();
  page.AddGauge("attendant_tls_certificate_expiry_seconds",
                "Expiry time of the TLS certificate, in seconds since 1970; "
                "+Inf without TLS.",
                end == absl::InfiniteFuture()
                    ? std::numeric_limits<double>::infinity()
                    : static_cast<double>(absl::ToUnixSeconds(end)));
  constexpr std::pair<const char*, AuthRefusal> kRefusals[] = {
      {"no_token", AuthRefusal::kNoToken},
      {"unknown_token", AuthRefusal::kUnknownToken},
      {"role_too_low", AuthRefusal::kRoleTooLow},
      {"catalog_not_allowed", AuthRefusal::kCatalogNotAllowed},
      {"not_for_all", AuthRefusal::kNotForAll}};
  for (const auto& [reason, refusal] : kRefusals) {
    const std::int64_t count =
        authenticator_ == nullptr ? 0
                                  : authenticator_->refusals()[refusal].value();
    page.AddCounter("attendant_auth_refused_total",
                    "Calls and requests of /metrics refused because of their "
                    "token, by reason.",
                    static_cast<double>(count), {{"reason", reason}});
  }
}

}  // namespace attendant
