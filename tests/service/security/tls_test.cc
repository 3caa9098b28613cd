// TLS and mutual TLS of a server, with the test's own certificates.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>

#include "client/api/advice.h"
#include "core/base/clock.h"
#include "service/security/tls_files.h"
#include "service/security/tls_reloader.h"
#include "tests/service/secure_server.h"
#include "tests/support/test_authority.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TlsTest : public SecureServer {
 protected:
  void SetUp() override {
    SecureServer::SetUp();
    ca_path_ = Write("ca.pem", authority_.certificate());
    WriteServerCertificate(authority_.Issue());
  }

  void WriteServerCertificate(const TestCertificate& certificate) {
    options_.security.tls.certificate =
        Write("server.pem", certificate.certificate);
    options_.security.tls.key = Write("server.key", certificate.key);
  }

  void AskForClientCertificates() {
    options_.security.tls.client_ca = ca_path_;
  }

  // Returns the security settings of a client with this certificate.
  ClientSecurity With(const std::string& name,
                      const TestCertificate& certificate) const {
    return {.ca_path = ca_path_,
            .certificate_path = Write(name + ".pem", certificate.certificate),
            .key_path = Write(name + ".key", certificate.key)};
  }

  // Returns OK if a new connection of such a client is served.
  absl::Status Call(const ClientSecurity& security) const {
    auto client = Connect(security);
    if (!client.ok()) return client.status();
    return Call(**client);
  }
  static absl::Status Call(Client& client) {
    return client.ListCatalogs({}).status();
  }

  static auto IsRefused() {
    return StatusIs(absl::StatusCode::kUnavailable, ::testing::_);
  }

  const TestAuthority authority_{"ours"};
  const TestAuthority other_{"other"};
  std::string ca_path_;
};

TEST_F(TlsTest, ServesWhoTrustsItsAuthority) {
  ASSERT_OK(Start());
  EXPECT_OK(Call({.ca_path = ca_path_}));
}

TEST_F(TlsTest, RefusesPlaintext) {
  ASSERT_OK(Start());
  EXPECT_THAT(Call(ClientSecurity()), IsRefused());
}

TEST_F(TlsTest, ClientsRefuseAnotherAuthority) {
  ASSERT_OK(Start());
  EXPECT_THAT(Call({.ca_path = Write("other.pem", other_.certificate())}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("whose certificate these authorities")));
}

TEST_F(TlsTest, ClientsRefuseAnExpiredCertificate) {
  WriteServerCertificate(authority_.Issue("IP:127.0.0.1", -absl::Hours(1)));
  ASSERT_OK(Start());
  EXPECT_THAT(Call({.ca_path = ca_path_}), IsRefused());
}

TEST_F(TlsTest, ClientsRefuseTheNameOfAnother) {
  WriteServerCertificate(authority_.Issue("DNS:example.com"));
  ASSERT_OK(Start());
  EXPECT_THAT(Call({.ca_path = ca_path_}), IsRefused());
}

TEST_F(TlsTest, MutualTlsServesOnlyCertificatesOfItsAuthority) {
  AskForClientCertificates();
  ASSERT_OK(Start());
  EXPECT_OK(Call(With("good", authority_.Issue())));
  const absl::Status without = Call({.ca_path = ca_path_});
  EXPECT_THAT(without, IsRefused());
  EXPECT_THAT(AdviceOn(without), HasSubstr("--client-cert and --client-key"));
  EXPECT_THAT(Call(With("other", other_.Issue())), IsRefused());
  EXPECT_THAT(
      Call(With("expired", authority_.Issue("IP:127.0.0.1", -absl::Hours(1)))),
      IsRefused());
  EXPECT_THAT(Call(ClientSecurity()), IsRefused());
  // The server still answers.
  EXPECT_OK(Call(With("good", authority_.Issue())));
}

TEST_F(TlsTest, ANewCertificateIsServedWithoutARestart) {
  ASSERT_OK(Start());
  ASSERT_OK_AND_ASSIGN(const auto before, Connect({.ca_path = ca_path_}));
  EXPECT_OK(Call(*before));

  const ClientSecurity trusts_other = {
      .ca_path = Write("other.pem", other_.certificate())};
  EXPECT_THAT(Call(trusts_other), IsRefused());
  WriteServerCertificate(other_.Issue());
  EXPECT_OK(Call(trusts_other));
  EXPECT_THAT(Call({.ca_path = ca_path_}), IsRefused());
  // Existing connections continue.
  EXPECT_OK(Call(*before));
}

TEST_F(TlsTest, NewClientAuthoritiesCountWithoutARestart) {
  AskForClientCertificates();
  ASSERT_OK(Start());
  const ClientSecurity ours = With("ours", authority_.Issue());
  ClientSecurity others = With("other", other_.Issue());
  // The server's certificate does not change.
  others.ca_path = Write("server-ca.pem", authority_.certificate());
  EXPECT_THAT(Call(others), IsRefused());
  Write("ca.pem", other_.certificate());
  EXPECT_OK(Call(others));
  ClientSecurity ours_now = ours;
  ours_now.ca_path = others.ca_path;
  EXPECT_THAT(Call(ours_now), IsRefused());
}

TEST_F(TlsTest, FilesThatAreNoGoodChangeNothing) {
  ASSERT_OK(Start());
  const ClientSecurity trusting = {.ca_path = ca_path_};
  EXPECT_OK(Call(trusting));

  ::testing::internal::CaptureStderr();
  // The key is replaced before its certificate, as when the files are written
  // one after the other.
  const TestCertificate next = authority_.Issue();
  Write("server.key", next.key);
  EXPECT_OK(Call(trusting));
  EXPECT_OK(Call(trusting));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("tls_not_reloaded"),
                         HasSubstr("is not the key of the certificate"),
                         Not(HasSubstr("PRIVATE"))));
  EXPECT_EQ(log.find("tls_not_reloaded"), log.rfind("tls_not_reloaded"));

  Write("server.pem", "no certificate");
  EXPECT_OK(Call(trusting));
  std::filesystem::remove(files_ / "server.pem");
  EXPECT_OK(Call(trusting));
  Write("server.pem", next.certificate);
  EXPECT_OK(Call(trusting));
}

TEST_F(TlsTest, DoesNotStartWithFilesThatAreNoGood) {
  options_.security.tls.key = Write("other.key", other_.Issue().key);
  EXPECT_THAT(Start(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is not the key of the certificate")));
  options_.security.tls.key = Write("no.key", "no key");
  EXPECT_THAT(Start(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("holds no unencrypted private key in PEM")));
  options_.security.tls.key = "";
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("tls-key: got nothing")));
  WriteServerCertificate(authority_.Issue());
  options_.security.tls.certificate = files_ / "missing.pem";
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kNotFound,
                                HasSubstr("missing.pem can't be read")));
  options_.security.tls.certificate = Write("not.pem", "no certificate");
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("holds no certificate in PEM")));
  WriteServerCertificate(authority_.Issue());
  options_.security.tls.client_ca = Write("not.pem", "no certificate");
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("holds no certificate in PEM")));
}

TEST(TlsReloaderTest, FilesThatAreNoGoodAreReadNowAndThen) {
  ::testing::internal::CaptureStderr();
  const ScratchDirectory files;
  const TestAuthority authority("ours");
  const auto write = [&](const std::string& pem) {
    std::ofstream(files / "pem") << pem;
  };
  // Each has another length, because file times are coarse.
  std::string end;
  const auto issue = [&] {
    const TestCertificate issued = authority.Issue();
    return issued.certificate + issued.key + (end += "\n");
  };
  write(issue());
  ASSERT_OK_AND_ASSIGN(
      const auto reloader,
      TlsReloader::Open({.certificate = files / "pem", .key = files / "pem"}));
  const SteadyTime begin = SteadyNow();
  const auto first = reloader->Current(begin);
  write("no certificate");
  EXPECT_EQ(reloader->Current(begin), first);
  write(issue());
  EXPECT_EQ(reloader->Current(begin + std::chrono::milliseconds(499)), first);
  const auto second = reloader->Current(begin + std::chrono::milliseconds(500));
  EXPECT_NE(second, first);
  // Valid files are read in time, and at once on request.
  write(issue());
  EXPECT_NE(reloader->Current(begin + std::chrono::milliseconds(500)), second);
  write("no certificate");
  EXPECT_THAT(reloader->Reload(), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("holds no certificate")));
  write(issue());
  EXPECT_OK(reloader->Reload());
  ::testing::internal::GetCapturedStderr();
}

TEST(TlsFilesTest, AChainThatIsNotWholeIsAnError) {
  const ScratchDirectory files;
  const TestAuthority authority("ours");
  const TestCertificate issued = authority.Issue();
  const std::string chain = issued.certificate + authority.certificate();
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(files / name) << text;
    return files / name;
  };
  const TlsPaths paths = {.certificate = write("chain.pem", chain),
                          .key = write("server.key", issued.key),
                          .client_ca = write("ca.pem", chain)};
  EXPECT_OK(ReadTlsFiles(paths).status());
  const std::string half = chain.substr(0, chain.size() - 100);
  for (const char* name : {"chain.pem", "ca.pem"}) {
    write(name, half);
    EXPECT_THAT(
        ReadTlsFiles(paths),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr(name),
                       HasSubstr("is damaged or incomplete: certificate 2"))));
    write(name, chain);
  }
}

TEST(TlsFilesTest, KnowWhenTheCertificateExpires) {
  const ScratchDirectory files;
  const TestAuthority authority("ours");
  const TestCertificate issued =
      authority.Issue("IP:127.0.0.1", absl::Hours(5));
  std::ofstream(files / "pem") << issued.certificate << issued.key;
  // One file may contain both.
  ASSERT_OK_AND_ASSIGN(
      const TlsMaterial material,
      ReadTlsFiles({.certificate = files / "pem", .key = files / "pem"}));
  EXPECT_GT(material.expiry, absl::Now() + absl::Hours(4));
  EXPECT_LT(material.expiry, absl::Now() + absl::Hours(5));
}

TEST(ListenTest, OnANetworkOnlyWithTlsOrWhenToldTo) {
  const SecurityOptions none;
  EXPECT_OK(ValidateSecurity(none, "127.0.0.1"));
  EXPECT_OK(ValidateSecurity(none, "127.8.8.8"));
  EXPECT_OK(ValidateSecurity(none, "localhost"));
  EXPECT_OK(ValidateSecurity(none, "[::1]"));
  for (const char* host :
       {"0.0.0.0", "[::]", "10.0.0.1", "example.com", "localhost.example.com",
        "[::ffff:10.0.0.1]", "", "127.example.com"}) {
    EXPECT_THAT(ValidateSecurity(none, host),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("listen: got "),
                               HasSubstr("plaintext-on-network"))))
        << host;
    EXPECT_OK(ValidateSecurity({.plaintext_on_network = true}, host));
    EXPECT_OK(ValidateSecurity(
        {.tls = {.certificate = "a", .key = "b"}, .token_path = "c"}, host));
    EXPECT_THAT(
        ValidateSecurity({.token_path = "tokens", .plaintext_on_network = true},
                         host),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("tokens would cross the network")));
  }
}

TEST(ListenTest, PartsThatGoTogether) {
  EXPECT_THAT(
      ValidateSecurity({.tls = {.client_ca = "ca"}}, "localhost"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tls-client-ca")));
  EXPECT_THAT(
      ValidateSecurity({.tls = {.key = "key"}}, "localhost"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tls-cert")));
  EXPECT_THAT(ValidateSecurity({.anonymous_read = true}, "localhost"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("anonymous-read: got true without tokens")));
}

}  // namespace
}  // namespace attendant
