// Who counts as one caller.
#include "service/calls/flow.h"

#include <grpcpp/server_context.h>
#include <grpcpp/test/server_context_test_spouse.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "service/calls/authorize.h"
#include "service/calls/backend.h"
#include "service/security/token_table.h"
#include "tests/service/secure_server.h"

namespace attendant {
namespace {

class FlowTest : public SecureServer {
 protected:
  // Of a call with such a header; empty: none.
  static std::uint64_t CallerOf(const Backend& backend,
                                const std::string& header) {
    grpc::ServerContext context;
    grpc::testing::ServerContextTestSpouse metadata(&context);
    if (!header.empty()) metadata.AddClientMetadata("authorization", header);
    return FlowOfCaller(FindGrant(backend, context).get(), context).caller;
  }
};

TEST_F(FlowTest, ATokenIsACallerOverAnyConnection) {
  ASSERT_OK_AND_ASSIGN(const NewToken a, MakeToken({.name = "a"}));
  ASSERT_OK_AND_ASSIGN(const NewToken b, MakeToken({.name = "b"}));
  ASSERT_OK_AND_ASSIGN(
      const auto authenticator,
      Authenticator::Open(Write("tokens", absl::StrCat(a.line, "\n", b.line)),
                          true));
  const Backend backend(catalogs_.get(), 1 << 20, authenticator.get());
  const std::uint64_t caller = CallerOf(backend, "Bearer " + a.token);
  EXPECT_EQ(CallerOf(backend, "Bearer " + a.token), caller);
  // However it is spelt.
  EXPECT_EQ(CallerOf(backend, "bEARER " + a.token), caller);
  EXPECT_EQ(CallerOf(backend, "Bearer    " + a.token), caller);
  EXPECT_NE(CallerOf(backend, "Bearer " + b.token), caller);
  EXPECT_NE(CallerOf(backend, ""), caller);
  // What is no token is none.
  EXPECT_EQ(CallerOf(backend, "Bearer a.x"), CallerOf(backend, ""));
}

TEST_F(FlowTest, WithoutTokensTheHeaderSaysNothing) {
  const Backend backend(catalogs_.get(), 1 << 20);
  EXPECT_EQ(CallerOf(backend, "Bearer a.1"), CallerOf(backend, ""));
}

}  // namespace
}  // namespace attendant
