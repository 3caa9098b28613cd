#include "service/security/tls_files.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/security/openssl.h"
#include "service/security/watched_files.h"

namespace attendant {
namespace {

// Prevents OpenSSL from prompting for a password on the terminal.
int NoPassword(char* /*buffer*/, int /*size*/, int /*writing*/,
               void* /*data*/) {
  return 0;
}

// Returns OpenSSL's last error and clears the error queue.
std::string LastError() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "unknown" : reason;
}

// Parses all certificates in the file; at least one.
absl::StatusOr<std::vector<Owned<X509>>> ParseCertificates(
    const std::string& path, const std::string& pem) {
  const Owned<BIO> reader = ReaderOf(pem);
  std::vector<Owned<X509>> certificates;
  while (Owned<X509> next{
      PEM_read_bio_X509(reader.get(), nullptr, &NoPassword, nullptr)}) {
    certificates.push_back(std::move(next));
  }
  const bool at_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = LastError();
  if (at_end && !certificates.empty()) return certificates;
  return absl::InvalidArgumentError(
      at_end ? absl::StrCat(path, " holds no certificate in PEM")
             : absl::StrCat(path, " is damaged or incomplete: certificate ",
                            certificates.size() + 1, ": ", reason));
}

absl::StatusOr<Owned<EVP_PKEY>> ParseKey(const std::string& path,
                                         const std::string& pem) {
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(ReaderOf(pem).get(), nullptr,
                                              &NoPassword, nullptr));
  ERR_clear_error();
  if (key != nullptr) return key;
  return absl::InvalidArgumentError(
      absl::StrCat(path, " holds no unencrypted private key in PEM"));
}

absl::Time ExpiryOf(const X509& certificate) {
  std::tm time = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &time) != 1) {
    return absl::InfiniteFuture();
  }
  return absl::FromTM(time, absl::UTCTimeZone());
}

// OK if TLS works with them: the library may reject short keys or old
// algorithms.
absl::Status TryOn(const std::vector<Owned<X509>>& certificates, EVP_PKEY* key,
                   const TlsPaths& paths) {
  const Owned<SSL_CTX> context(SSL_CTX_new(TLS_server_method()));
  bool fits =
      context != nullptr &&
      SSL_CTX_use_certificate(context.get(), certificates[0].get()) == 1 &&
      SSL_CTX_use_PrivateKey(context.get(), key) == 1;
  for (std::size_t i = 1; fits && i < certificates.size(); ++i) {
    fits = SSL_CTX_add1_chain_cert(context.get(), certificates[i].get()) == 1;
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(paths.certificate, " can't be used for TLS: ", LastError()));
}

}  // namespace

absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsPaths& paths) {
  TlsMaterial material;
  ATTENDANT_ASSIGN_OR_RETURN(material.certificate,
                             ReadSmallFile(paths.certificate));
  ATTENDANT_ASSIGN_OR_RETURN(material.key, ReadSmallFile(paths.key));
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::vector<Owned<X509>> certificates,
      ParseCertificates(paths.certificate, material.certificate));
  ATTENDANT_ASSIGN_OR_RETURN(const Owned<EVP_PKEY> key,
                             ParseKey(paths.key, material.key));
  const bool fit =
      X509_check_private_key(certificates[0].get(), key.get()) == 1;
  ERR_clear_error();
  if (!fit) {
    return absl::InvalidArgumentError(absl::StrCat(
        paths.key, " is not the key of the certificate ", paths.certificate));
  }
  ATTENDANT_RETURN_IF_ERROR(TryOn(certificates, key.get(), paths));
  material.expiry = ExpiryOf(*certificates[0]);
  if (!paths.client_ca.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(material.client_ca,
                               ReadSmallFile(paths.client_ca));
    ATTENDANT_RETURN_IF_ERROR(
        ParseCertificates(paths.client_ca, material.client_ca).status());
  }
  return material;
}

}  // namespace attendant
