#include "service/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/watched_files.h"

namespace attendant {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

Owned<BIO> Reader(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Never asks at a terminal.
int NoPassword(char* /*buffer*/, int /*size*/, int /*writing*/,
               void* /*data*/) {
  return 0;
}

// The first certificate of the file.
absl::StatusOr<Owned<X509>> ParseCertificate(const std::string& path,
                                             const std::string& pem) {
  Owned<X509> certificate(
      PEM_read_bio_X509(Reader(pem).get(), nullptr, &NoPassword, nullptr));
  ERR_clear_error();
  if (certificate != nullptr) return certificate;
  return absl::InvalidArgumentError(
      absl::StrCat(path, " holds no certificate in PEM"));
}

absl::StatusOr<Owned<EVP_PKEY>> ParseKey(const std::string& path,
                                         const std::string& pem) {
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr,
                                              &NoPassword, nullptr));
  ERR_clear_error();
  if (key != nullptr) return key;
  return absl::InvalidArgumentError(
      absl::StrCat(path, " holds no private key in PEM without a password"));
}

absl::Time ExpiryOf(const X509& certificate) {
  std::tm time = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &time) != 1) {
    return absl::InfiniteFuture();
  }
  return absl::FromTM(time, absl::UTCTimeZone());
}

}  // namespace

absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsPaths& paths) {
  TlsMaterial material;
  ATTENDANT_ASSIGN_OR_RETURN(material.certificate,
                             ReadSmallFile(paths.certificate));
  ATTENDANT_ASSIGN_OR_RETURN(material.key, ReadSmallFile(paths.key));
  ATTENDANT_ASSIGN_OR_RETURN(
      const Owned<X509> certificate,
      ParseCertificate(paths.certificate, material.certificate));
  ATTENDANT_ASSIGN_OR_RETURN(const Owned<EVP_PKEY> key,
                             ParseKey(paths.key, material.key));
  const bool fit = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!fit) {
    return absl::InvalidArgumentError(absl::StrCat(
        paths.key, " is not the key of the certificate ", paths.certificate));
  }
  material.expiry = ExpiryOf(*certificate);
  if (!paths.client_ca.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(material.client_ca,
                               ReadSmallFile(paths.client_ca));
    ATTENDANT_RETURN_IF_ERROR(
        ParseCertificate(paths.client_ca, material.client_ca).status());
  }
  return material;
}

}  // namespace attendant
