// Owning pointers to OpenSSL objects.
#ifndef ATTENDANT_SERVICE_SECURITY_OPENSSL_H_
#define ATTENDANT_SERVICE_SECURITY_OPENSSL_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace attendant {

struct FreeOpenSsl {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_STORE* store) const { X509_STORE_free(store); }
};
template <typename T>
using Owned = std::unique_ptr<T, FreeOpenSsl>;

// Returns a BIO that reads `pem`, which must outlive it.
inline Owned<BIO> ReaderOf(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_OPENSSL_H_
