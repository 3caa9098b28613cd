#include "client/doctor/certificate.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/host_port.h"

namespace attendant {
namespace {

constexpr int kPatienceSeconds = 5;
constexpr absl::Duration kNotice = absl::Hours(14 * 24);

struct Free {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(X509* certificate) const { X509_free(certificate); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

// Opens a TCP connection that waits at most kPatienceSeconds for each byte.
// Returns null if that fails.
Owned<BIO> ConnectTo(const std::string& address) {
  Owned<BIO> connection(BIO_new_connect(address.c_str()));
  if (connection == nullptr) return nullptr;
  BIO_set_nbio(connection.get(), 1);
  const std::time_t end = std::time(nullptr) + kPatienceSeconds;
  while (BIO_do_connect(connection.get()) != 1) {
    if (BIO_should_retry(connection.get()) == 0 ||
        BIO_wait(connection.get(), end, 0) != 1) {
      return nullptr;
    }
  }
  const int socket = static_cast<int>(BIO_get_fd(connection.get(), nullptr));
  const timeval patience = {.tv_sec = kPatienceSeconds, .tv_usec = 0};
  BIO_socket_nbio(socket, 0);
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  return connection;
}

// A server with a certificate for each of several names shows the one whose
// name is requested (SNI). TLS does not allow addresses as such names.
void AskFor(const std::string& host, SSL* ssl) {
  in_addr v4 = {};
  in6_addr v6 = {};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1 ||
      inet_pton(AF_INET6, host.c_str(), &v6) == 1) {
    return;
  }
  SSL_set_tlsext_host_name(ssl, host.c_str());
}

}  // namespace

absl::StatusOr<absl::Time> CertificateExpiry(const std::string& address) {
  const Owned<BIO> connection = ConnectTo(address);
  const Owned<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  const Owned<SSL> ssl(connection == nullptr ? nullptr
                                             : SSL_new(context.get()));
  Owned<X509> certificate;
  if (ssl != nullptr) {
    BIO_up_ref(connection.get());
    SSL_set_bio(ssl.get(), connection.get(), connection.get());
    AskFor(BareHostOf(address), ssl.get());
    // May fail because we show no certificate; the server has shown its own by
    // then.
    SSL_connect(ssl.get());
    certificate.reset(SSL_get1_peer_certificate(ssl.get()));
  }
  ERR_clear_error();
  std::tm end = {};
  if (certificate == nullptr ||
      ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
    return absl::UnavailableError(
        absl::StrCat(address, " shows no certificate"));
  }
  return absl::FromTM(end, absl::UTCTimeZone());
}

Finding ExamineExpiry(absl::Time expiry, absl::Time now) {
  const std::string when =
      absl::FormatTime(absl::RFC3339_sec, expiry, absl::UTCTimeZone());
  constexpr char kAdvice[] =
      "put a new one into the files of --tls-cert and --tls-key: the server "
      "loads it without a restart (docs/operations.md, TLS)";
  if (expiry <= now) {
    return {"certificate", Verdict::kFailure, absl::StrCat("expired at ", when),
            kAdvice};
  }
  if (expiry - now < kNotice) {
    return {"certificate", Verdict::kWarning, absl::StrCat("expires at ", when),
            kAdvice};
  }
  return {.subject = "certificate", .text = absl::StrCat("good until ", when)};
}

}  // namespace attendant
