// Tokens through a server: each kind of call, and each reason for a refusal.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "attendant/v1/item_service.grpc.pb.h"
#include "client/api/importer.h"
#include "core/base/clock.h"
#include "service/security/authenticator.h"
#include "tests/service/raw_call.h"
#include "tests/service/secure_server.h"
#include "tests/support/parse_proto.h"
#include "tests/support/test_authority.h"

namespace attendant {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kReflection[] =
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";

// Tokens "reader", "writer" and "admin" for all catalogs, and "films", which
// administers that catalog and those that begin with "films-".
class TokenServiceTest : public SecureServer {
 protected:
  void SetUp() override {
    SecureServer::SetUp();
    AddToken("reader", Role::kRead, "*");
    AddToken("writer", Role::kWrite, "*");
    AddToken("admin", Role::kAdmin, "*");
    AddToken("films", Role::kAdmin, "films,films-*");
    WriteTokens();
  }

  // Starts the server with the catalogs "films" and "shop", which have
  // one-dimensional keys "k".
  void StartWithCatalogs() {
    ASSERT_OK(Start());
    const auto admin = As("admin");
    for (const char* name : {"films", "shop"}) {
      ASSERT_OK(admin->CreateCatalog(CatalogNamed(name)).status());
    }
  }

  static v1::CreateCatalogRequest CatalogNamed(const std::string& name) {
    return Parse<v1::CreateCatalogRequest>(absl::StrCat(
        "name: '", name, "' schema { key_fields { name: 'k' dimension: 1 } }"));
  }
  static v1::BatchUpsertItemsRequest OneItem(const std::string& catalog) {
    return Parse<v1::BatchUpsertItemsRequest>(
        absl::StrCat("catalog: '", catalog,
                     "' items { id: 'a' keys { key: 'k' value { floats { "
                     "values: 1 } } } }"));
  }
  static v1::AttendRequest Query(const std::string& catalog) {
    return Parse<v1::AttendRequest>(absl::StrCat(
        "catalog: '", catalog, "' query { vector { floats { values: 1 } } }"));
  }

  // Returns a client with the token of that name, or without a token if there
  // is none.
  std::unique_ptr<Client> As(const std::string& name) const {
    const auto found = tokens_.find(name);
    return WithToken(found == tokens_.end() ? "" : found->second);
  }
  std::unique_ptr<Client> WithToken(const std::string& token) const {
    auto client = Connect({.token = token});
    EXPECT_OK(client.status());
    return client.ok() ? *std::move(client) : nullptr;
  }

  absl::Status Read(const std::string& name) const {
    return As(name)->Attend(Query("films")).status();
  }
  absl::Status WriteItem(const std::string& name) const {
    return As(name)->BatchUpsertItems(OneItem("films")).status();
  }

  // Returns the status of a call with these metadata that sends no message.
  grpc::Status CallWith(const std::string& method,
                        const std::vector<std::string>& authorization) const {
    grpc::ClientContext context;
    for (const std::string& value : authorization) {
      context.AddMetadata("authorization", value);
    }
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(
        grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
    const auto call = stub.PrepareCall(&context, method, &queue);
    void* tag = nullptr;
    bool ok = false;
    call->StartCall(nullptr);
    queue.Next(&tag, &ok);
    call->WritesDone(nullptr);
    queue.Next(&tag, &ok);
    grpc::Status status;
    call->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
    queue.Shutdown();
    return status;
  }

  static auto IsUnauthenticated() {
    return StatusIs(absl::StatusCode::kUnauthenticated, _);
  }
  static auto IsDenied(const std::string& text) {
    return StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(text));
  }
};

TEST_F(TokenServiceTest, EachRoleMayDoWhatItIsFor) {
  StartWithCatalogs();
  EXPECT_OK(Read("reader"));
  EXPECT_OK(Read("writer"));
  EXPECT_OK(Read("admin"));
  EXPECT_THAT(WriteItem("reader"),
              IsDenied("wants the role write, and the token's is read"));
  EXPECT_OK(WriteItem("writer"));
  EXPECT_OK(WriteItem("admin"));
  const auto create = CatalogNamed("films-2");
  EXPECT_THAT(As("writer")->CreateCatalog(create).status(),
              IsDenied("wants the role admin, and the token's is write"));
  EXPECT_OK(As("admin")->CreateCatalog(create).status());
}

TEST_F(TokenServiceTest, WithoutAGoodTokenNothingIsServed) {
  StartWithCatalogs();
  EXPECT_THAT(Read("nobody"), IsUnauthenticated());
  EXPECT_THAT(WithToken("reader.wrong")->Attend(Query("films")).status(),
              IsUnauthenticated());
  std::string changed = tokens_["admin"];
  changed.back() = changed.back() == 'A' ? 'E' : 'A';
  EXPECT_THAT(WithToken(changed)->ListCatalogs({}).status(),
              IsUnauthenticated());
  // One token's name with another token's secret.
  const std::string& admin = tokens_["admin"];
  EXPECT_THAT(WithToken(absl::StrCat("reader", admin.substr(admin.find('.'))))
                  ->ListCatalogs({})
                  .status(),
              IsUnauthenticated());
}

TEST_F(TokenServiceTest, OfSeveralAuthorizationsNoneCounts) {
  StartWithCatalogs();
  const std::string list = "/attendant.v1.CatalogService/ListCatalogs";
  const std::string good = absl::StrCat("Bearer ", tokens_["admin"]);
  const auto code = [&](const std::vector<std::string>& authorization) {
    return CallWith(list, authorization).error_code();
  };
  // The request is missing, which is checked after the caller.
  EXPECT_NE(code({good}), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(code({good, good}), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(code({good, "Bearer films.x"}), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(code({absl::StrCat("Basic ", tokens_["admin"])}),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(code({tokens_["admin"]}), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_NE(code({absl::StrCat("bearer  ", tokens_["admin"])}),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(TokenServiceTest, WhoBringsSeveralAuthorizationsIsCounted) {
  ASSERT_OK_AND_ASSIGN(const auto security, Security::Open(options_.security));
  options_.listen = "127.0.0.1:0";
  ASSERT_OK_AND_ASSIGN(server_,
                       Server::Start(options_, catalogs_.get(), security));
  const std::string good = absl::StrCat("Bearer ", tokens_["admin"]);
  EXPECT_EQ(CallWith("/attendant.v1.CatalogService/ListCatalogs", {good, good})
                .error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(
      security->authenticator()->refusals()[AuthRefusal::kUnknownToken].value(),
      1);
}

TEST_F(TokenServiceTest, StreamsAreCheckedBeforeTheyBegin) {
  StartWithCatalogs();
  const auto import = [&](const std::string& name, const std::string& catalog) {
    const auto client = As(name);
    const auto importer = client->StartImport(catalog, {});
    importer->Add(OneItem(catalog).items(0))
        .IgnoreError();  // Finish says it again
    return importer->Finish();
  };
  EXPECT_THAT(import("nobody", "films"), IsUnauthenticated());
  EXPECT_THAT(import("reader", "films"), IsDenied("the role write"));
  EXPECT_THAT(import("films", "shop"), IsDenied("catalogs films,films-*"));
  EXPECT_OK(import("films", "films"));

  v1::CreateSnapshotRequest snapshot;
  snapshot.set_catalog("shop");
  snapshot.set_name("one");
  const auto create = [&](const std::string& name) {
    return As(name)->CreateSnapshot(snapshot, [](const auto&) {}).status();
  };
  EXPECT_THAT(create("nobody"), IsUnauthenticated());
  EXPECT_THAT(create("writer"), IsDenied("the role admin"));
  EXPECT_THAT(create("films"), IsDenied("got \"shop\""));
  EXPECT_OK(create("admin"));

  v1::ExportSnapshotRequest request;
  request.set_catalog("shop");
  request.set_name("one");
  std::vector<std::string> parts;
  const auto fetch = [&](const std::string& name) {
    parts.clear();
    return As(name)->ExportSnapshot(
        request, [&](const v1::ExportSnapshotResponse& response) {
          parts.push_back(response.chunk());
          return absl::OkStatus();
        });
  };
  EXPECT_THAT(fetch("nobody"), IsUnauthenticated());
  EXPECT_THAT(fetch("films"), IsDenied("got \"shop\""));
  EXPECT_OK(fetch("admin"));

  const auto put = [&](const std::string& name, const std::string& catalog) {
    std::size_t next = 0;
    return As(name)
        ->ImportSnapshot(
            [&](v1::ImportSnapshotRequest* part) -> absl::StatusOr<bool> {
              if (next == parts.size()) return false;
              if (next == 0) {
                part->set_catalog(catalog);
                part->set_name("two");
              }
              part->set_chunk(parts[next++]);
              return true;
            })
        .status();
  };
  EXPECT_THAT(put("nobody", "films-3"), IsUnauthenticated());
  EXPECT_THAT(put("writer", "films-3"), IsDenied("the role admin"));
  EXPECT_THAT(put("films", "shop"), IsDenied("got \"shop\""));
  EXPECT_THAT(put("films", ""), IsDenied("got \"\""));
  EXPECT_OK(put("films", "films-3"));

  v1::RestoreSnapshotRequest restore;
  restore.set_catalog("films-3");
  restore.set_name("two");
  restore.set_new_catalog("shop-2");
  const auto begin = [&](const std::string& name) {
    return As(name)->RestoreSnapshot(restore, [](const auto&) {}).status();
  };
  EXPECT_THAT(begin("films"), IsDenied("got \"shop-2\""));
  restore.set_new_catalog("films-4");
  EXPECT_OK(begin("films"));
}

TEST_F(TokenServiceTest, ARestoreCreatesModelsForAllCatalogsOnly) {
  ASSERT_OK(Start());
  const auto admin = As("admin");
  ASSERT_OK(
      catalogs_->models().Create("taste", {BilinearForm{{1, 1, {2}}}}, {}));
  ASSERT_OK(
      admin
          ->CreateCatalog(Parse<v1::CreateCatalogRequest>(
              "name: 'films' schema { key_fields { name: 'k' dimension: 1 "
              "score_kind: SCORE_KIND_BILINEAR model { name: 'taste' } } }"))
          .status());
  v1::CreateSnapshotRequest snapshot;
  snapshot.set_catalog("films");
  snapshot.set_name("one");
  ASSERT_OK(admin->CreateSnapshot(snapshot, [](const auto&) {}).status());
  ASSERT_OK(catalogs_->Delete("films"));
  ASSERT_OK(catalogs_->DeleteModel({"taste", 1}));

  const auto restore = [&](const std::string& name) {
    v1::RestoreSnapshotRequest request;
    request.set_catalog("films");
    request.set_name("one");
    request.set_new_catalog("films");
    return As(name)->RestoreSnapshot(request, [](const auto&) {}).status();
  };
  EXPECT_THAT(restore("films"), IsDenied("model 'taste' of the snapshot"));
  EXPECT_TRUE(catalogs_->models().List({}, 9).empty());
  EXPECT_TRUE(catalogs_->List("", 9).empty());
  EXPECT_OK(restore("admin"));
  // The catalog exists now, so restoring does not need the right to create it.
  ASSERT_OK(catalogs_->Delete("films"));
  EXPECT_OK(restore("films"));
}

TEST_F(TokenServiceTest, ATokenReachesOnlyItsCatalogs) {
  StartWithCatalogs();
  const auto films = As("films");
  const auto admin = As("admin");
  EXPECT_OK(films->BatchUpsertItems(OneItem("films")).status());
  EXPECT_THAT(
      films->BatchUpsertItems(OneItem("shop")).status(),
      IsDenied("the token is for catalogs films,films-*; got \"shop\""));
  EXPECT_OK(films->Attend(Query("films")).status());
  EXPECT_THAT(films->Attend(Query("shop")).status(), IsDenied("got \"shop\""));
  // A catalog that does not exist looks the same.
  EXPECT_THAT(films->Attend(Query("none")).status(), IsDenied("got \"none\""));
  EXPECT_THAT(films->CreateCatalog(CatalogNamed("shop-2")).status(),
              IsDenied("got \"shop-2\""));
  EXPECT_OK(films->CreateCatalog(CatalogNamed("films-2")).status());
  EXPECT_THAT(
      films->GetCatalog(Parse<v1::GetCatalogRequest>("name: 'shop'")).status(),
      IsDenied("got \"shop\""));
  EXPECT_THAT(
      films->DeleteCatalog(Parse<v1::DeleteCatalogRequest>("name: 'shop'"))
          .status(),
      IsDenied("got \"shop\""));
  EXPECT_THAT(
      films->UpdateCatalog(Parse<v1::UpdateCatalogRequest>("name: 'shop'"))
          .status(),
      IsDenied("got \"shop\""));

  const auto set_alias = [&](const std::string& request) {
    return films->SetAlias(Parse<v1::SetAliasRequest>(request)).status();
  };
  EXPECT_THAT(set_alias("alias: 'films-now' catalog: 'shop'"),
              IsDenied("got \"shop\""));
  EXPECT_THAT(set_alias("alias: 'now' catalog: 'films'"),
              IsDenied("got \"now\""));
  EXPECT_OK(set_alias("alias: 'films-now' catalog: 'films'"));
  EXPECT_OK(films->Attend(Query("films-now")).status());
  EXPECT_OK(
      admin->SetAlias(Parse<v1::SetAliasRequest>("alias: 'x' catalog: 'films'"))
          .status());
  // Access through an alias does not include the right to give the catalog
  // another alias.
  EXPECT_OK(admin
                ->SetAlias(Parse<v1::SetAliasRequest>(
                    "alias: 'films-lent' catalog: 'shop'"))
                .status());
  EXPECT_OK(films->Attend(Query("films-lent")).status());
  EXPECT_THAT(set_alias("alias: 'films-kept' catalog: 'films-lent'"),
              IsDenied("got \"shop\""));
  EXPECT_OK(
      admin->DeleteAlias(Parse<v1::DeleteAliasRequest>("alias: 'films-lent'"))
          .status());
  // Nor does it reveal others' aliases.
  EXPECT_OK(
      films->DeleteAlias(Parse<v1::DeleteAliasRequest>("alias: 'films-now'"))
          .status());
  EXPECT_THAT(
      films->DeleteCatalog(Parse<v1::DeleteCatalogRequest>("name: 'films'"))
          .status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               ::testing::AllOf(HasSubstr("'films' has an alias"),
                                Not(HasSubstr("'x'")))));
  // A scope is a set of names, whatever an alias currently stands for.
  EXPECT_THAT(films->Attend(Query("x")).status(), IsDenied("got \"x\""));
  EXPECT_THAT(
      films->GetAlias(Parse<v1::GetAliasRequest>("alias: 'x'")).status(),
      IsDenied("got \"x\""));
  EXPECT_THAT(
      films->DeleteAlias(Parse<v1::DeleteAliasRequest>("alias: 'x'")).status(),
      IsDenied("got \"x\""));

  EXPECT_THAT(films
                  ->Contextualize(Parse<v1::ContextualizeRequest>(
                      "sequence { items { catalog: 'films' ids: 'a' } } "
                      "memory { items { catalog: 'shop' ids: 'a' } }"))
                  .status(),
              IsDenied("got \"shop\""));
  EXPECT_OK(
      films
          ->Contextualize(Parse<v1::ContextualizeRequest>(
              "sequence { vectors { vectors { floats { values: 1 } } } }"))
          .status());
  // Models belong to all catalogs.
  EXPECT_OK(films->ListModels({}).status());
  EXPECT_THAT(films->CreateModel({}).status(),
              IsDenied("models belong to no catalog"));
  EXPECT_THAT(films->DeleteModel({}).status(),
              IsDenied("models belong to no catalog"));
}

TEST_F(TokenServiceTest, RefusalsForCatalogsAreCountedAndLogged) {
  ASSERT_OK_AND_ASSIGN(const auto security, Security::Open(options_.security));
  options_.listen = "127.0.0.1:0";
  ASSERT_OK_AND_ASSIGN(server_,
                       Server::Start(options_, catalogs_.get(), security));
  ASSERT_OK(As("admin")->CreateCatalog(CatalogNamed("shop")).status());
  ASSERT_OK(As("admin")
                ->SetAlias(Parse<v1::SetAliasRequest>(
                    "alias: 'films-now' catalog: 'shop'"))
                .status());
  const auto films = As("films");
  testing::internal::CaptureStderr();
  EXPECT_THAT(films->Attend(Query("shop")).status(), IsDenied("got \"shop\""));
  EXPECT_THAT(films->DeleteModel(Parse<v1::DeleteModelRequest>("name: 'taste'"))
                  .status(),
              IsDenied("can't change them"));
  // The handler resolves the alias.
  EXPECT_THAT(films
                  ->SetAlias(Parse<v1::SetAliasRequest>(
                      "alias: 'films-2' catalog: 'films-now'"))
                  .status(),
              IsDenied("got \"shop\""));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(security->authenticator()
                ->refusals()[AuthRefusal::kCatalogNotAllowed]
                .value(),
            3);
  EXPECT_THAT(log, AllOf(HasSubstr("call_refused"),
                         HasSubstr("/attendant.v1.AttentionService/Attend"),
                         HasSubstr("/attendant.v1.ModelService/DeleteModel"),
                         HasSubstr("/attendant.v1.AliasService/SetAlias"),
                         HasSubstr("the token is for catalogs films,films-*")));
  MetricPage page;
  security->WriteMetrics(page);
  EXPECT_THAT(page.Text(), HasSubstr("reason=\"catalog_not_allowed\"} 3"));
}

TEST_F(TokenServiceTest, ListsShowATokenItsOwnCatalogs) {
  StartWithCatalogs();
  const auto admin = As("admin");
  for (const char* alias : {"films-now", "shop-now"}) {
    ASSERT_OK(admin
                  ->SetAlias(Parse<v1::SetAliasRequest>(
                      absl::StrCat("alias: '", alias, "' catalog: 'films'")))
                  .status());
  }
  const auto names = [&](const std::string& token) {
    std::vector<std::string> listed;
    const auto client = As(token);
    const auto catalogs = client->ListCatalogs({});
    EXPECT_OK(catalogs.status());
    for (const auto& catalog : catalogs->catalogs()) {
      listed.push_back(catalog.name());
    }
    const auto aliases = client->ListAliases({});
    EXPECT_OK(aliases.status());
    for (const auto& alias : aliases->aliases()) listed.push_back(alias.name());
    return listed;
  };
  EXPECT_THAT(names("admin"),
              ElementsAre("films", "shop", "films-now", "shop-now"));
  EXPECT_THAT(names("films"), ElementsAre("films", "films-now"));
}

// Returns the names on all pages of two entries, one text per page. `list`
// requests a page with page_size and page_token, and appends its names.
template <typename Request, typename List>
std::vector<std::string> Pages(Request request, const List& list) {
  std::vector<std::string> pages;
  request.set_page_size(2);
  do {
    const auto page = list(request, pages.emplace_back());
    EXPECT_OK(page.status());
    if (!page.ok()) break;
    request.set_page_token(page->next_page_token());
    std::string token;
    EXPECT_TRUE(absl::WebSafeBase64Unescape(request.page_token(), &token));
    EXPECT_THAT(token.substr(token.rfind('\n') + 1), Not(HasSubstr("b")));
  } while (!request.page_token().empty() && pages.size() < 9);
  return pages;
}

TEST_F(TokenServiceTest, PagesOfListsHoldWhatIsInScopeAndNothingElse) {
  AddToken("ace", Role::kRead, "a*,c*,e*");
  WriteTokens();
  ASSERT_OK(Start());
  const auto admin = As("admin");
  for (const char* name : {"a", "b1", "b2", "b3", "b4", "c", "e", "f"}) {
    ASSERT_OK(admin->CreateCatalog(CatalogNamed(name)).status());
    ASSERT_OK(admin
                  ->SetAlias(Parse<v1::SetAliasRequest>(absl::StrCat(
                      "alias: '", name, "-now' catalog: '", name, "'")))
                  .status());
    v1::CreateSnapshotRequest snapshot;
    snapshot.set_catalog(name);
    snapshot.set_name("s");
    ASSERT_OK(admin->CreateSnapshot(snapshot, [](const auto&) {}).status());
  }
  const auto ace = As("ace");
  const auto catalogs = [&](const auto& request, std::string& names) {
    auto page = ace->ListCatalogs(request);
    if (!page.ok()) return page;
    for (const auto& catalog : page->catalogs()) names += catalog.name() + " ";
    return page;
  };
  const auto aliases = [&](const auto& request, std::string& names) {
    auto page = ace->ListAliases(request);
    if (!page.ok()) return page;
    for (const auto& alias : page->aliases()) names += alias.name() + " ";
    return page;
  };
  const auto snapshots = [&](const auto& request, std::string& names) {
    auto page = ace->ListSnapshots(request);
    if (!page.ok()) return page;
    for (const auto& one : page->snapshots()) names += one.catalog() + " ";
    return page;
  };
  EXPECT_THAT(Pages(v1::ListCatalogsRequest(), catalogs),
              ElementsAre("a c ", "e "));
  EXPECT_THAT(Pages(v1::ListAliasesRequest(), aliases),
              ElementsAre("a-now c-now ", "e-now "));
  EXPECT_THAT(Pages(v1::ListSnapshotsRequest(), snapshots),
              ElementsAre("a c ", "e "));
  v1::ListSnapshotsRequest other;
  other.set_catalog("b1");
  EXPECT_THAT(ace->ListSnapshots(other).status(), IsDenied("got \"b1\""));
  other.set_catalog("c-now");
  EXPECT_THAT(Pages(other, snapshots), ElementsAre("c "));
}

TEST_F(TokenServiceTest, DamageOutsideTheScopeIsNotTold) {
  AddToken("ace", Role::kRead, "a*");
  WriteTokens();
  std::vector<std::string> damage;  // files whose loss it is
  CatalogSchema schema;
  schema.key_fields.resize(1);
  schema.key_fields[0].name = "k";
  schema.key_fields[0].dim = 1;
  for (const char* name : {"a", "b"}) {
    ASSERT_OK_AND_ASSIGN(const CatalogSet::Created made,
                         catalogs_->Create(name, schema, {}));
    LongWork work{Interrupt()};
    ASSERT_OK(catalogs_->CreateSnapshot(name, "s", work).status());
    const auto uid = made.catalog->record().uid;
    std::ofstream(
        absl::StrCat(data_.path(), "/snapshots/", name, "/s/MANIFEST"),
        std::ios::app)
        << " ";
    damage.push_back(absl::StrCat(data_.path(), "/items/", uid, "/CURRENT"));
  }
  catalogs_.reset();
  for (const std::string& file : damage) std::filesystem::remove(file);
  ASSERT_OK_AND_ASSIGN(catalogs_, CatalogSet::Open(data_.path(), {}));
  ASSERT_OK(Start());
  const auto names = [&](const std::string& token) {
    const auto client = As(token);
    std::string damaged;
    const auto catalogs = client->ListCatalogs({});
    EXPECT_OK(catalogs.status());
    for (const auto& one : catalogs->damaged_catalogs()) {
      damaged += one.name() + " ";
    }
    const auto snapshots = client->ListSnapshots({});
    EXPECT_OK(snapshots.status());
    for (const auto& one : snapshots->damaged_snapshots()) {
      damaged += one.catalog() + " ";
    }
    return damaged;
  };
  EXPECT_EQ(names("reader"), "a b a b ");
  EXPECT_EQ(names("ace"), "a a ");
}

TEST_F(TokenServiceTest, HealthIsOpenAndReflectionIsNot) {
  StartWithCatalogs();
  const auto channel =
      grpc::CreateChannel(address(), grpc::InsecureChannelCredentials());
  EXPECT_TRUE(CallWithBytes(channel, kHealthCheck, "").ok());
  EXPECT_EQ(CallWith(kReflection, {}).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(
      CallWith(kReflection, {absl::StrCat("Bearer ", tokens_["reader"])}).ok());
  // So is a method that does not exist.
  EXPECT_EQ(CallWith("/attendant.v1.ItemService/Drop", {}).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(CallWith("/attendant.v1.ItemService/Drop",
                     {absl::StrCat("Bearer ", tokens_["writer"])})
                .error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(TokenServiceTest, AnonymousReadIsForReadingOnly) {
  options_.security.anonymous_read = true;
  StartWithCatalogs();
  EXPECT_OK(Read("nobody"));
  EXPECT_THAT(WriteItem("nobody"),
              IsDenied("wants the role write, and without a token it is read"));
  // A wrong token is worse than none.
  EXPECT_THAT(WithToken("a.b")->Attend(Query("films")).status(),
              IsUnauthenticated());
  EXPECT_OK(WriteItem("writer"));
}

TEST_F(TokenServiceTest, TokensTravelWithTlsToo) {
  const TestAuthority authority("ours");
  const TestCertificate issued = authority.Issue();
  options_.security.tls.certificate = Write("server.pem", issued.certificate);
  options_.security.tls.key = Write("server.key", issued.key);
  ASSERT_OK(Start());
  ClientSecurity security = {.ca_path =
                                 Write("ca.pem", authority.certificate())};
  const auto list = [&] {
    auto client = Connect(security);
    return client.ok() ? (*client)->ListCatalogs({}).status() : client.status();
  };
  EXPECT_THAT(list(), IsUnauthenticated());
  security.token = tokens_["reader"];
  EXPECT_OK(list());
  security.token = "reader.x";
  EXPECT_THAT(list(), IsUnauthenticated());
}

// Changes to the file take effect within kLookInterval, which the test waits
// for.
TEST_F(TokenServiceTest, ChangesCountWithoutARestart) {
  StartWithCatalogs();
  const auto await = [](const std::function<bool()>& condition) {
    const SteadyTime end = SteadyAfter(absl::Seconds(60));
    while (!condition() && SteadyNow() < end)
      absl::SleepFor(absl::Milliseconds(20));
    return condition();
  };
  AddToken("new", Role::kRead, "*");
  EXPECT_THAT(Read("new"), IsUnauthenticated());
  lines_.erase("writer");
  WriteTokens();
  EXPECT_TRUE(await([&] { return Read("new").ok(); }));
  EXPECT_THAT(WriteItem("writer"), IsUnauthenticated());

  // An invalid file changes nothing, and is logged without its secrets.
  ::testing::internal::CaptureStderr();
  std::string log;
  Write("tokens", absl::StrCat(tokens_["admin"], " admin\n"));
  EXPECT_TRUE(await([&] {
    EXPECT_OK(Read("new"));
    log += ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
    return log.find("tokens_not_reloaded") != std::string::npos;
  }));
  ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("line 1: got 2 words"));
  EXPECT_THAT(log, Not(HasSubstr(tokens_["admin"])));
  // Nor does a missing file.
  ::testing::internal::CaptureStderr();
  log.clear();
  std::filesystem::remove(options_.security.token_path);
  EXPECT_TRUE(await([&] {
    EXPECT_OK(Read("new"));
    log += ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
    return log.find("tokens_not_reloaded") != std::string::npos;
  }));
  ::testing::internal::GetCapturedStderr();

  lines_.erase("new");
  WriteTokens();
  EXPECT_TRUE(await([&] { return absl::IsUnauthenticated(Read("new")); }));
  EXPECT_OK(Read("reader"));
}

TEST_F(TokenServiceTest, AnOpenStreamEndsOnceItsTokenMayNoMore) {
  StartWithCatalogs();
  const auto stub = v1::ItemService::NewStub(
      grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  // Measures from the first answer until the call ends.
  const auto end_after = [&](const std::function<void()>& change) {
    grpc::ClientContext context;
    context.AddMetadata("authorization",
                        absl::StrCat("Bearer ", tokens_["writer"]));
    const auto stream = stub->ImportItems(&context);
    v1::ImportItemsRequest request;
    request.set_catalog("films");
    *request.add_items() = OneItem("films").items(0);
    v1::ImportItemsResponse response;
    EXPECT_TRUE(stream->Write(request) && stream->Read(&response));
    change();
    request.clear_catalog();
    const SteadyTime end = SteadyAfter(absl::Seconds(60));
    while (SteadyNow() < end && stream->Write(request) &&
           stream->Read(&response)) {
      absl::SleepFor(absl::Milliseconds(20));
    }
    if (SteadyNow() >= end) context.TryCancel();
    return stream->Finish();
  };
  testing::internal::CaptureStderr();
  const auto replace_line = [&](Role role, const std::string& scope) {
    const std::string token = tokens_["writer"];
    AddToken("writer", role, scope);
    tokens_["writer"] = token;
    WriteTokens();
  };
  // Another secret under the same name, with more rights.
  EXPECT_EQ(end_after([&] { replace_line(Role::kAdmin, "*"); }).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);

  // The same secret with fewer rights: another role, or other catalogs.
  for (const auto& [from, to] :
       {std::pair(" write ", " read "), std::pair(" * ", " shop ")}) {
    AddToken("writer", Role::kWrite, "*");
    WriteTokens();
    const SteadyTime end = SteadyAfter(absl::Seconds(60));
    while (!WriteItem("writer").ok() && SteadyNow() < end) {
      absl::SleepFor(absl::Milliseconds(20));
    }
    EXPECT_EQ(end_after([&, from = std::string(from), to = to] {
                std::string& line = lines_["writer"];
                line.replace(line.find(from), from.size(), to);
                WriteTokens();
              }).error_code(),
              grpc::StatusCode::PERMISSION_DENIED)
        << to;
  }
  // Also in a message of a stream.
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("call_refused"));
  EXPECT_THAT(log, HasSubstr("/attendant.v1.ItemService/ImportItems"));
  EXPECT_THAT(log, HasSubstr("the token was revoked"));
  EXPECT_THAT(log, HasSubstr("the token's is read"));
  EXPECT_THAT(log, HasSubstr("the token is for catalogs shop"));
}

// However long after its headers, which were checked, the message arrives.
TEST_F(TokenServiceTest, ACallThatIsHeldBackMayNoMoreThanItsTokenNow) {
  StartWithCatalogs();
  const auto channel =
      grpc::CreateChannel(address(), grpc::InsecureChannelCredentials());
  v1::DeleteCatalogRequest request;
  request.set_name("shop");
  const auto end_after = [&](const std::function<void()>& change,
                             absl::Duration wait) {
    RawCall call(channel, "/attendant.v1.CatalogService/DeleteCatalog",
                 tokens_["admin"]);
    // The server has read the new file.
    const SteadyTime end = SteadyAfter(absl::Seconds(10));
    EXPECT_OK(Read("reader"));
    change();
    while (
        wait == absl::ZeroDuration() && SteadyNow() < end &&
        !absl::IsPermissionDenied(
            As("admin")
                ->DeleteCatalog(Parse<v1::DeleteCatalogRequest>("name: 'none'"))
                .status())) {
      absl::SleepFor(absl::Milliseconds(20));
    }
    absl::SleepFor(wait);
    call.Write(request.SerializeAsString());
    call.WritesDone();
    call.Read();
    return call.Finish();
  };
  std::string& line = lines_["admin"];
  const std::string as_admin = line;
  EXPECT_EQ(end_after(
                [&] {
                  line.replace(line.find(" admin "), 7, " read ");
                  WriteTokens();
                },
                absl::ZeroDuration())
                .error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  line = as_admin;
  WriteTokens();
  const SteadyTime end = SteadyAfter(absl::Seconds(10));
  while (
      absl::IsPermissionDenied(
          As("admin")
              ->DeleteCatalog(Parse<v1::DeleteCatalogRequest>("name: 'none'"))
              .status()) &&
      SteadyNow() < end) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  // Nobody else makes calls meanwhile.
  EXPECT_EQ(end_after(
                [&] {
                  lines_.erase("admin");
                  WriteTokens();
                },
                absl::Seconds(2))
                .error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_OK(As("reader")->Attend(Query("shop")).status());
}

TEST_F(TokenServiceTest, DoesNotStartWithAFileThatIsNoGood) {
  Write("tokens", "nothing of it\n");
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("tokens: line 1: got 3 words")));
  std::filesystem::remove(options_.security.token_path);
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kNotFound,
                                HasSubstr("tokens can't be read")));
}

}  // namespace
}  // namespace attendant
