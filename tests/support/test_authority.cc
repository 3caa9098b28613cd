#include "tests/support/test_authority.h"

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <functional>

namespace attendant {
namespace {

std::string ToPem(const std::function<int(BIO*)>& write) {
  BIO* bio = BIO_new(BIO_s_mem());
  EXPECT_EQ(write(bio), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string pem(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return pem;
}

void AddExtension(X509* certificate, int kind, const std::string& value) {
  X509_EXTENSION* extension =
      X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
  ASSERT_NE(extension, nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Returns an unsigned certificate; it names itself as issuer if there is none.
X509* NewCertificate(const std::string& name, EVP_PKEY* key, const X509* issuer,
                     absl::Duration validity) {
  static std::atomic<long> serial = 1;
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -2 * 3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate),
                  static_cast<long>(absl::ToInt64Seconds(validity)));
  X509_set_pubkey(certificate, key);
  X509_NAME* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(
      subject, "CN", MBSTRING_ASC,
      reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(
      certificate, issuer == nullptr ? subject : X509_get_subject_name(issuer));
  return certificate;
}

std::string ToPem(X509* certificate) {
  return ToPem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

}  // namespace

TestAuthority::TestAuthority(const std::string& name)
    : key_(EVP_EC_gen("P-256")),
      root_(NewCertificate(name, key_, nullptr, absl::Hours(1))) {
  AddExtension(root_, NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(root_, NID_key_usage, "critical,keyCertSign");
  EXPECT_GT(X509_sign(root_, key_, EVP_sha256()), 0);
  certificate_ = ToPem(root_);
}

TestAuthority::~TestAuthority() {
  X509_free(root_);
  EVP_PKEY_free(key_);
}

TestCertificate TestAuthority::Issue(const std::string& host,
                                     absl::Duration validity) const {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = NewCertificate("test", key, root_, validity);
  AddExtension(certificate, NID_subject_alt_name, host);
  EXPECT_GT(X509_sign(certificate, key_, EVP_sha256()), 0);
  TestCertificate issued;
  issued.certificate = ToPem(certificate);
  issued.key = ToPem([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr,
                                    nullptr);
  });
  X509_free(certificate);
  EVP_PKEY_free(key);
  return issued;
}

}  // namespace attendant
