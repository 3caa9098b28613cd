// Who counts as one caller.
#include "service/flow.h"

#include <grpcpp/server_context.h>
#include <grpcpp/test/server_context_test_spouse.h>
#include <gtest/gtest.h>

#include <string>

#include "service/backend.h"
#include "tests/service/secure_server.h"

namespace attendant {
namespace {

class FlowTest : public SecureServer {
 protected:
  static FlowKey FlowOf(const Backend& backend, const std::string& token) {
    grpc::ServerContext context;
    if (!token.empty()) {
      grpc::testing::ServerContextTestSpouse(&context).AddClientMetadata(
          "authorization", token);
    }
    return FlowOfCaller(backend, context);
  }
};

TEST_F(FlowTest, ATokenIsACallerOverAnyConnection) {
  ASSERT_OK_AND_ASSIGN(const auto authenticator,
                       Authenticator::Open(Write("tokens", ""), true));
  const Backend backend(catalogs_.get(), 1 << 20, authenticator.get());
  const FlowKey one = FlowOf(backend, "Bearer a.1");
  EXPECT_EQ(one.caller, FlowOf(backend, "Bearer a.1").caller);
  EXPECT_NE(one.caller, FlowOf(backend, "Bearer b.1").caller);
  EXPECT_NE(one.caller, FlowOf(backend, "").caller);
}

TEST_F(FlowTest, WithoutTokensTheHeaderSaysNothing) {
  const Backend backend(catalogs_.get(), 1 << 20);
  EXPECT_EQ(FlowOf(backend, "Bearer a.1").caller, FlowOf(backend, "").caller);
}

}  // namespace
}  // namespace attendant
