// The HTTP port with TLS and tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/http_port.h"
#include "tests/service/secure_server.h"
#include "tests/support/test_authority.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

  // Returns the status of a page.
  int Get(const std::string& page, const std::string& token = "") const {
    httplib::Client client("127.0.0.1", port_->port());
    return StatusOf(client, page, token);
  }
  // Asks over TLS, with the authority in a file, and with a client certificate
  // if given.
  int GetByTls(const std::string& ca_path, const std::string& pair_path = "",
               const std::string& page = "/livez",
               const std::string& token = "") const {
    httplib::SSLClient client("127.0.0.1", port_->port(), pair_path, pair_path);
    client.set_ca_cert_path(ca_path.c_str());
    client.enable_server_certificate_verification(true);
    return StatusOf(client, page, token);
  }

  // Returns the body of a page over TLS, whatever its status.
  std::string BodyByTls(const std::string& page) const {
    httplib::SSLClient client("127.0.0.1", port_->port());
    client.enable_server_certificate_verification(false);
    const httplib::Result result = client.Get(page);
    return result ? result->body : "no answer";
  }

  SecurityOptions& security_ = options_.security;
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
  AddToken("reader", Role::kRead, "*");
  AddToken("films", Role::kRead, "films");
  WriteTokens();
  Open();
  EXPECT_EQ(Get("/livez"), 200);
  EXPECT_EQ(Get("/readyz"), 503);  // no server yet
  testing::internal::CaptureStderr();
  EXPECT_EQ(Get("/metrics"), 401);
  EXPECT_EQ(Get("/metrics", "reader.x"), 401);
  EXPECT_EQ(Get("/metrics", tokens_["films"]), 403);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("call_refused"));
  EXPECT_THAT(log, HasSubstr("\"/metrics\""));
  EXPECT_THAT(log, HasSubstr("the token does not permit all of them"));
  EXPECT_EQ(Get("/metrics", tokens_["reader"]), 200);
}

TEST_F(HttpSecurityTest, AnonymousReadOpensTheMetrics) {
  AddToken("films", Role::kRead, "films");
  WriteTokens();
  security_.anonymous_read = true;
  Open();
  EXPECT_EQ(Get("/metrics"), 200);
  EXPECT_EQ(Get("/metrics", tokens_["films"]), 403);
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

TEST_F(HttpSecurityTest, TellsWhenTheCertificateEnds) {
  const TestAuthority ours("ours");
  const auto use = [&](absl::Duration validity) {
    const TestCertificate issued = ours.Issue("IP:127.0.0.1", validity);
    security_.tls.certificate = security_.tls.key =
        Write("server.pem", issued.certificate + issued.key);
  };
  use(absl::Hours(15 * 24));
  Open();
  const auto end_by_metric = [&] {
    const std::string page = BodyByTls("/metrics");
    const std::string name = "\nattendant_tls_certificate_expiry_seconds ";
    const std::size_t at = page.find(name);
    EXPECT_NE(at, std::string::npos);
    return absl::FromUnixSeconds(static_cast<std::int64_t>(
        std::strtod(page.c_str() + at + name.size(), nullptr)));
  };
  const auto near = [](absl::Time end, absl::Duration validity) {
    return absl::AbsDuration(end - absl::Now() - validity) < absl::Minutes(30);
  };
  EXPECT_TRUE(near(end_by_metric(), absl::Hours(15 * 24)));
  EXPECT_THAT(BodyByTls("/readyz"), Not(HasSubstr("certificate")));
  use(absl::Hours(13 * 24));
  EXPECT_TRUE(near(end_by_metric(), absl::Hours(13 * 24)));
  EXPECT_THAT(BodyByTls("/readyz"), HasSubstr("certificate expires at 20"));
  use(-absl::Hours(1));
  EXPECT_THAT(BodyByTls("/readyz"), HasSubstr("certificate expired at 20"));
}

TEST_F(HttpSecurityTest, WithoutTlsNothingEnds) {
  Open();
  httplib::Client client("127.0.0.1", port_->port());
  EXPECT_THAT(client.Get("/metrics")->body,
              HasSubstr("\nattendant_tls_certificate_expiry_seconds +Inf\n"));
}

// Supervisors have no certificate: Kubernetes probes show none.
TEST_F(HttpSecurityTest, MutualTlsWantsACertificateOfItsAuthorityBeyondProbes) {
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
  const std::string good = pair("good.pem", ours.Issue());
  const std::string unknown = pair("other-client.pem", other.Issue());
  const std::string expired =
      pair("expired.pem", ours.Issue("IP:127.0.0.1", -absl::Hours(1)));
  for (const auto& [page, status] :
       {std::pair("/livez", 200), {"/readyz", 503}, {"/metrics", 200}}) {
    EXPECT_EQ(GetByTls(ca_path, good, page), status) << page;
    EXPECT_EQ(GetByTls(ca_path, unknown, page), kNoAnswer) << page;
    EXPECT_EQ(GetByTls(ca_path, expired, page), kNoAnswer) << page;
  }
  EXPECT_EQ(GetByTls(ca_path), 200);
  EXPECT_EQ(GetByTls(ca_path, "", "/readyz"), 503);  // no server yet
  EXPECT_EQ(GetByTls(ca_path, "", "/metrics"), 403);
  EXPECT_THAT(BodyByTls("/metrics"),
              HasSubstr("got none, want one from a CA in --tls-client-ca"));
}

// A certificate is required in addition to a token.
TEST_F(HttpSecurityTest, ATokenStandsInForNoCertificate) {
  AddToken("reader", Role::kRead, "*");
  WriteTokens();
  const TestAuthority ours("ours");
  const TestCertificate issued = ours.Issue();
  security_.tls.certificate = security_.tls.key =
      Write("server.pem", issued.certificate + issued.key);
  const std::string ca_path = Write("ours.pem", ours.certificate());
  security_.tls.client_ca = ca_path;
  Open();
  const std::string& pair = security_.tls.key;
  EXPECT_EQ(GetByTls(ca_path, pair, "/metrics", tokens_["reader"]), 200);
  EXPECT_EQ(GetByTls(ca_path, pair, "/metrics"), 401);
  EXPECT_EQ(GetByTls(ca_path, "", "/metrics", tokens_["reader"]), 403);
}

TEST_F(HttpSecurityTest, ProbesAreNotRefused) {
  AddToken("films", Role::kRead, "films");
  WriteTokens();
  ASSERT_OK_AND_ASSIGN(const auto security, Security::Open(security_));
  options_.listen = "127.0.0.1:0";
  ASSERT_OK_AND_ASSIGN(server_,
                       Server::Start(options_, catalogs_.get(), security));
  ASSERT_OK_AND_ASSIGN(port_,
                       HttpPort::Start({"127.0.0.1:0", security_}, security));
  port_->Show(*server_);
  const auto& refusals = security->authenticator()->refusals();
  EXPECT_EQ(Get("/readyz"), 200);
  EXPECT_EQ(Get("/readyz", tokens_["films"]), 200);
  EXPECT_EQ(refusals[AuthRefusal::kNoToken].value(), 0);
  EXPECT_EQ(refusals[AuthRefusal::kNotForAll].value(), 0);
  EXPECT_EQ(Get("/metrics"), 401);
  EXPECT_EQ(refusals[AuthRefusal::kNoToken].value(), 1);
  EXPECT_EQ(Get("/metrics", tokens_["films"]), 403);
  EXPECT_EQ(refusals[AuthRefusal::kNotForAll].value(), 1);
}

// All ports share one certificate and one table of tokens.
TEST_F(HttpSecurityTest, SharesWhatSecuresItWithTheServer) {
  AddToken("reader", Role::kRead, "*");
  WriteTokens();
  ASSERT_OK_AND_ASSIGN(const auto security, Security::Open(security_));
  ASSERT_OK_AND_ASSIGN(port_,
                       HttpPort::Start({"127.0.0.1:0", security_}, security));
  EXPECT_EQ(Get("/metrics", tokens_["reader"]), 200);
  AddToken("late", Role::kRead, "*");
  WriteTokens();
  EXPECT_OK(security->Reload());
  EXPECT_EQ(Get("/metrics", tokens_["late"]), 200);
  Write("tokens", "nothing\n");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(security->Reload(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("tokens: line 1: got 1 words")));
  }
  EXPECT_EQ(Get("/metrics", tokens_["late"]), 200);
}

TEST_F(HttpSecurityTest, ListensToOthersOnlyWithTls) {
  EXPECT_THAT(HttpPort::Start({.listen = "0.0.0.0:0"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("http-listen: got 0.0.0.0 without TLS")));
}

}  // namespace
}  // namespace attendant
