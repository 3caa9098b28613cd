// What counts as one caller and as one catalog.
#include "service/calls/flow.h"

#include <grpcpp/server_context.h>
#include <grpcpp/test/server_context_test_spouse.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "attendant/v1/item_service.pb.h"
#include "service/calls/authorize.h"
#include "service/calls/backend.h"
#include "service/security/token_table.h"
#include "tests/service/raw_call.h"
#include "tests/service/secure_server.h"

namespace attendant {
namespace {

class FlowTest : public SecureServer {
 protected:
  // The caller of a call with this header; "" sends none.
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
  // The scheme is not case-sensitive.
  EXPECT_EQ(CallerOf(backend, "bEARER " + a.token), caller);
  EXPECT_EQ(CallerOf(backend, "Bearer    " + a.token), caller);
  EXPECT_NE(CallerOf(backend, "Bearer " + b.token), caller);
  EXPECT_NE(CallerOf(backend, ""), caller);
  // An invalid token counts as no token.
  EXPECT_EQ(CallerOf(backend, "Bearer a.x"), CallerOf(backend, ""));
}

TEST_F(FlowTest, WithoutTokensTheHeaderSaysNothing) {
  const Backend backend(catalogs_.get(), 1 << 20);
  EXPECT_EQ(CallerOf(backend, "Bearer a.1"), CallerOf(backend, ""));
}

TEST_F(FlowTest, WhereTurnsAreCountedAnAliasIsItsCatalog) {
  CatalogSchema schema;
  schema.key_fields = {{.name = "k", .dim = 1}};
  ASSERT_OK(catalogs_->Create("films", schema, {}));
  ASSERT_OK(catalogs_->Create("shop", schema, {}));
  ASSERT_OK(catalogs_->SetAlias("now", "films", std::nullopt));
  const auto catalog_of = [&](const std::string& name,
                              const CatalogSet* catalogs) {
    v1::BatchDeleteItemsRequest request;
    request.set_catalog(name);
    const grpc::ServerContext context;
    return FlowOfCatalog(nullptr, context,
                         ToBuffer(request.SerializeAsString()), catalogs)
        .catalog;
  };
  const CatalogSet* const all = catalogs_.get();
  EXPECT_EQ(catalog_of("now", all), catalog_of("films", all));
  EXPECT_NE(catalog_of("shop", all), catalog_of("films", all));
  EXPECT_EQ(catalog_of("films", nullptr), catalog_of("films", all));
  EXPECT_NE(catalog_of("now", nullptr), catalog_of("films", nullptr));
  // A name that is missing there counts too.
  EXPECT_NE(catalog_of("", all), 0U);
}

}  // namespace
}  // namespace attendant
