#include "service/security/port_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "service/security/access.h"
#include "service/security/tls_reloader.h"

namespace attendant {
namespace {

// Supplies gRPC with the certificate for TLS handshakes. Thread-safe.
class TlsFetcher {
 public:
  explicit TlsFetcher(TlsReloader& reloader) : reloader_(reloader) {}

  bool wants_client_certificates() const {
    return reloader_.wants_client_certificates();
  }

  // Callback of gRPC before each handshake: provides the material if it is new.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<TlsFetcher*>(self)->Fetch(config);
  }

 private:
  grpc_ssl_certificate_config_reload_status Fetch(
      grpc_ssl_server_certificate_config** config) {
    MutexLock lock(&mutex_);
    const std::shared_ptr<const TlsMaterial> material =
        reloader_.Current(SteadyNow());
    if (material == fetched_) {
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    fetched_ = material;
    const grpc_ssl_pem_key_cert_pair pair = {material->key.c_str(),
                                             material->certificate.c_str()};
    // gRPC requires CA certificates even if clients need no certificate; then
    // nothing is checked against them.
    const std::string& authorities = wants_client_certificates()
                                         ? material->client_ca
                                         : material->certificate;
    *config = grpc_ssl_server_certificate_config_create(authorities.c_str(),
                                                        &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  TlsReloader& reloader_;
  Mutex mutex_;
  std::shared_ptr<const TlsMaterial> fetched_ ABSL_GUARDED_BY(mutex_);
};

absl::string_view View(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)),
          GRPC_SLICE_LENGTH(slice)};
}

absl::Status CheckCaller(Authenticator* authenticator,
                         const grpc_metadata* metadata, std::size_t count,
                         absl::string_view& path) {
  absl::string_view header;
  int header_count = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const absl::string_view key = View(metadata[i].key);
    if (key == ":path") path = View(metadata[i].value);
    if (key == "authorization") {
      header = View(metadata[i].value);
      ++header_count;
    }
  }
  if (authenticator == nullptr) return absl::OkStatus();
  const std::optional<Role> needed = RoleFor(path);
  if (!needed) return absl::OkStatus();
  // With several headers, one might be checked and another one used.
  if (header_count > 1) {
    authenticator->CountRefusal(AuthRefusal::kUnknownToken);
    return absl::UnauthenticatedError("authorization: got several, want one");
  }
  return authenticator->CheckRole(*needed, header);
}

struct CallChecks {
  Authenticator* authenticator;  // null: no tokens are required
  CallAdmission admit;
  RefusalLog* refusal_log;
};

// Callback of gRPC before each call; `state` points to CallChecks.
void ProcessMetadata(void* state, grpc_auth_context* context,
                     const grpc_metadata* metadata, std::size_t count,
                     grpc_process_auth_metadata_done_cb done, void* data) {
  const auto& checks = *static_cast<const CallChecks*>(state);
  absl::string_view path;
  absl::Status status =
      CheckCaller(checks.authenticator, metadata, count, path);
  if (status.ok()) status = checks.admit(context);
  if (!status.ok()) checks.refusal_log->Note(path, status);
  done(data, nullptr, 0, nullptr, 0,
       static_cast<grpc_status_code>(status.code()),
       std::string(status.message()).c_str());
}

// Uses gRPC's C interface: the C++ interface drops the current certificates
// when it reloads, processes metadata on a separate thread, and does not
// process it at all without TLS.
class PortCredentials final : public grpc::ServerCredentials {
 public:
  // Without TLS, tokens are accepted only from this machine.
  PortCredentials(std::shared_ptr<Security> security, CallAdmission admit)
      : security_(std::move(security)),
        checks_{security_->authenticator(), std::move(admit),
                &security_->refusal_log()},
        fetcher_(security_->tls() == nullptr
                     ? nullptr
                     : std::make_unique<TlsFetcher>(*security_->tls())),
        credentials_(fetcher_ != nullptr ? MakeTls(*fetcher_)
                     : security_->authenticator() != nullptr
                         ? grpc_local_server_credentials_create(LOCAL_TCP)
                         : grpc_insecure_server_credentials_create()) {
    grpc_server_credentials_set_auth_metadata_processor(
        credentials_, {&ProcessMetadata, nullptr, &checks_});
  }
  ~PortCredentials() override { grpc_server_credentials_release(credentials_); }

  // Never called: the constructor sets what checks calls.
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    std::abort();
  }

 private:
  static grpc_server_credentials* MakeTls(TlsFetcher& fetcher) {
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            fetcher.wants_client_certificates()
                ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            &TlsFetcher::Fetch, &fetcher));
  }

  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  const std::shared_ptr<Security> security_;
  CallChecks checks_;
  const std::unique_ptr<TlsFetcher> fetcher_;  // null: no TLS
  grpc_server_credentials* const credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakePortCredentials(
    std::shared_ptr<Security> security, CallAdmission admit) {
  return std::make_shared<PortCredentials>(std::move(security),
                                           std::move(admit));
}

}  // namespace attendant
