#include "service/http/http_security.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "service/security/access.h"

namespace attendant {
namespace {

constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;

// Returns the next certificate; null after the last.
Owned<X509> NextCertificate(BIO* pem) {
  Owned<X509> certificate(PEM_read_bio_X509(pem, nullptr, nullptr, nullptr));
  ERR_clear_error();
  return certificate;
}

bool UseCertificate(SSL* ssl, const TlsMaterial& material) {
  const Owned<BIO> certificates = ReaderOf(material.certificate);
  const Owned<X509> own = NextCertificate(certificates.get());
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(
      ReaderOf(material.key).get(), nullptr, nullptr, nullptr));
  if (own == nullptr || key == nullptr ||
      SSL_use_certificate(ssl, own.get()) != 1 ||
      SSL_use_PrivateKey(ssl, key.get()) != 1) {
    return false;
  }
  while (const Owned<X509> next = NextCertificate(certificates.get())) {
    if (SSL_add1_chain_cert(ssl, next.get()) != 1) return false;
  }
  return true;
}

bool AskForCertificate(SSL* ssl, const TlsMaterial& material) {
  const Owned<X509_STORE> authorities(X509_STORE_new());
  const Owned<BIO> certificates = ReaderOf(material.client_ca);
  while (const Owned<X509> next = NextCertificate(certificates.get())) {
    if (X509_STORE_add_cert(authorities.get(), next.get()) != 1) return false;
  }
  // A client without a certificate may complete the handshake: supervisors that
  // probe have none.
  SSL_set_verify(ssl, SSL_VERIFY_PEER, nullptr);
  return SSL_set1_verify_cert_store(ssl, authorities.get()) == 1;
}

// Callback of OpenSSL for each handshake; returns 1 to continue.
int ChooseCertificate(SSL* ssl, void* data) {
  TlsReloader& reloader = *static_cast<TlsReloader*>(data);
  const std::shared_ptr<const TlsMaterial> material =
      reloader.Current(SteadyNow());
  if (!UseCertificate(ssl, *material)) return 0;
  if (!reloader.wants_client_certificates()) return 1;
  return AskForCertificate(ssl, *material) ? 1 : 0;
}

bool LacksCertificate(const Security& security, const HttpRequest& request) {
  const TlsReloader* tls = security.tls();
  return tls != nullptr && tls->wants_client_certificates() &&
         !request.has_certificate;
}

// Requires only the scope, since every role may read.
bool HoldsAll(Authenticator& authenticator, const HttpRequest& request) {
  const std::shared_ptr<const Grant> grant =
      authenticator.GrantOf(request.authorization);
  return grant != nullptr && grant->scope.HoldsAll();
}

}  // namespace

TlsContext MakeTlsContext(TlsReloader* reloader) {
  if (reloader == nullptr) return nullptr;
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) throw std::bad_alloc();  // the only possible cause
  SSL_CTX_set_cert_cb(context.get(), &ChooseCertificate, reloader);
  // A resumed session would outlive the CAs against which its client was
  // checked.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  return context;
}

bool MayReadAll(const Security& security, const HttpRequest& request) {
  if (LacksCertificate(security, request)) return false;
  Authenticator* authenticator = security.authenticator();
  return authenticator == nullptr || HoldsAll(*authenticator, request);
}

absl::Status CheckMayReadAll(const Security& security,
                             const HttpRequest& request) {
  if (LacksCertificate(security, request)) {
    return absl::PermissionDeniedError(
        "client certificate: got none, want one from a CA in --tls-client-ca");
  }
  Authenticator* authenticator = security.authenticator();
  if (authenticator == nullptr) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(
      authenticator->CheckRole(Role::kRead, request.authorization));
  if (HoldsAll(*authenticator, request)) return absl::OkStatus();
  authenticator->CountRefusal(AuthRefusal::kNotForAll);
  return absl::PermissionDeniedError(
      "this page covers all catalogs, and the token does not permit all of "
      "them");
}

HttpResponse RefusalResponse(const absl::Status& error) {
  const bool unknown = absl::IsUnauthenticated(error);
  return {.status = unknown ? kUnauthorized : kForbidden,
          .body = absl::StrCat(error.message(), "\n"),
          .www_authenticate = unknown ? "Bearer" : ""};
}

}  // namespace attendant
