// The HTTP port with TLS and tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "service/http_port.h"
#include "tests/service/secure_server.h"
#include "tests/support/test_authority.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr int kNoAnswer = -1;

class HttpSecurityTest : public SecureServer {
 protected:
  void Open() {
    ASSERT_OK_AND_ASSIGN(port_, HttpPort::Start({.listen = "127.0.0.1:0",
                                                 .security = security_}));
  }
  void TearDown() override {
    port_.reset();
    SecureServer::TearDown();
  }

  // The status of a page.
  int Get(const std::string& page, const std::string& token = "") const {
    httplib::Client client("127.0.0.1", port_->port());
    return StatusOf(client, page, token);
  }
  // Over TLS, with the authority of a file, and a certificate where there is
  // one.
  int GetByTls(const std::string& ca_path, const std::string& pair_path = "",
               const std::string& page = "/livez") const {
    httplib::SSLClient client("127.0.0.1", port_->port(), pair_path, pair_path);
    client.set_ca_cert_path(ca_path.c_str());
    client.enable_server_certificate_verification(true);
    return StatusOf(client, page, "");
  }

  std::string AddToken(const std::string& name, const std::string& scope) {
    auto catalogs = CatalogScope::FromText(scope);
    auto made = MakeToken({.name = name, .scope = *catalogs});
    EXPECT_OK(made.status());
    absl::StrAppend(&tokens_, made->line, "\n");
    security_.token_path = Write("tokens", tokens_);
    return made->token;
  }

  SecurityOptions security_;
  std::string tokens_;
  std::unique_ptr<HttpPort> port_;

 private:
  template <typename HttpClient>
  static int StatusOf(HttpClient& client, const std::string& page,
                      const std::string& token) {
    httplib::Headers headers;
    if (!token.empty()) {
      headers.emplace("Authorization", absl::StrCat("Bearer ", token));
    }
    const httplib::Result result = client.Get(page, headers);
    return result ? result->status : kNoAnswer;
  }
};

TEST_F(HttpSecurityTest, MetricsWantATokenForAllCatalogs) {
  const std::string reader = AddToken("reader", "*");
  const std::string films = AddToken("films", "films");
  Open();
  EXPECT_EQ(Get("/livez"), 200);
  EXPECT_EQ(Get("/readyz"), 503);  // no server yet
  EXPECT_EQ(Get("/metrics"), 401);
  EXPECT_EQ(Get("/metrics", "reader.x"), 401);
  EXPECT_EQ(Get("/metrics", films), 403);
  EXPECT_EQ(Get("/metrics", reader), 200);
}

TEST_F(HttpSecurityTest, AnonymousReadOpensTheMetrics) {
  const std::string films = AddToken("films", "films");
  security_.anonymous_read = true;
  Open();
  EXPECT_EQ(Get("/metrics"), 200);
  EXPECT_EQ(Get("/metrics", films), 403);
}

TEST_F(HttpSecurityTest, SpeaksTlsWithTheCertificateOfTheMoment) {
  const TestAuthority ours("ours");
  const TestAuthority other("other");
  const auto use = [&](const TestAuthority& authority) {
    const TestCertificate issued = authority.Issue();
    security_.tls.certificate = security_.tls.key =
        Write("server.pem", issued.certificate + issued.key);
  };
  use(ours);
  Open();
  const std::string ours_path = Write("ours.pem", ours.certificate());
  const std::string other_path = Write("other.pem", other.certificate());
  EXPECT_EQ(GetByTls(ours_path), 200);
  EXPECT_EQ(GetByTls(other_path), kNoAnswer);
  EXPECT_EQ(Get("/livez"), kNoAnswer);  // in plain text
  use(other);
  EXPECT_EQ(GetByTls(other_path), 200);
  EXPECT_EQ(GetByTls(ours_path), kNoAnswer);
}

TEST_F(HttpSecurityTest, MutualTlsWantsACertificateOfItsAuthority) {
  const TestAuthority ours("ours");
  const TestAuthority other("other");
  const TestCertificate issued = ours.Issue();
  const auto pair = [&](const std::string& name,
                        const TestCertificate& certificate) {
    return Write(name, certificate.certificate + certificate.key);
  };
  security_.tls.certificate = security_.tls.key = pair("server.pem", issued);
  const std::string ca_path = Write("ours.pem", ours.certificate());
  security_.tls.client_ca = ca_path;
  Open();
  EXPECT_EQ(GetByTls(ca_path, pair("good.pem", ours.Issue())), 200);
  EXPECT_EQ(GetByTls(ca_path), kNoAnswer);
  EXPECT_EQ(GetByTls(ca_path, pair("other-client.pem", other.Issue())),
            kNoAnswer);
  EXPECT_EQ(GetByTls(ca_path, pair("expired.pem", ours.Issue("IP:127.0.0.1",
                                                             -absl::Hours(1)))),
            kNoAnswer);
}

TEST_F(HttpSecurityTest, ListensToOthersOnlyWithTls) {
  EXPECT_THAT(HttpPort::Start({.listen = "0.0.0.0:0"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("http-listen: got 0.0.0.0 without TLS")));
}

}  // namespace
}  // namespace attendant
