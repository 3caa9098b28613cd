// Aliases through a real server: every request that names a catalog.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "attendant/v1/alias_service.grpc.pb.h"
#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

class AliasServiceTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    CreateShop();
    alias_stub_ = v1::AliasService::NewStub(channel_);
  }

  grpc::Status Set(const std::string& alias, const std::string& catalog,
                   const char* expected = nullptr,
                   v1::SetAliasResponse* response = nullptr) {
    grpc::ClientContext context;
    v1::SetAliasRequest request;
    request.set_alias(alias);
    request.set_catalog(catalog);
    if (expected != nullptr) request.set_expected_catalog(expected);
    v1::SetAliasResponse ignored;
    return alias_stub_->SetAlias(&context, request,
                                 response != nullptr ? response : &ignored);
  }
  grpc::Status Delete(const std::string& alias) {
    grpc::ClientContext context;
    v1::DeleteAliasRequest request;
    request.set_alias(alias);
    v1::DeleteAliasResponse response;
    return alias_stub_->DeleteAlias(&context, request, &response);
  }
  static v1::AttendRequest Query(const std::string& catalog) {
    v1::AttendRequest request;
    request.set_catalog(catalog);
    auto* floats = request.mutable_query()->mutable_vector()->mutable_floats();
    floats->add_values(1);
    floats->add_values(0);
    return request;
  }
  // A catalog like the shop, empty.
  void CreateEmpty(const std::string& name) {
    v1::CreateCatalogRequest request;
    request.set_name(name);
    auto* field = request.mutable_schema()->add_key_fields();
    field->set_name("k");
    field->set_dimension(2);
    ASSERT_TRUE(Create(request).ok());
  }

  std::unique_ptr<v1::AliasService::Stub> alias_stub_;
};

TEST_F(AliasServiceTest, ServesWhereverACatalogIsNamed) {
  ASSERT_TRUE(Set("window", "shop").ok());
  v1::AttendResponse answer;
  ASSERT_TRUE(Attend(Query("window"), &answer).ok());
  EXPECT_EQ(answer.items_size(), 3);
  v1::ListItemsRequest list;
  list.set_catalog("window");
  v1::ListItemsResponse items;
  ASSERT_TRUE(List(list, &items).ok());
  EXPECT_EQ(items.items_size(), 3);
  v1::BatchUpsertItemsRequest upsert;
  upsert.set_catalog("window");
  *upsert.add_items() = items.items(0);
  upsert.mutable_items(0)->set_id("d");
  ASSERT_TRUE(Upsert(upsert).ok());
  {
    grpc::ClientContext context;
    v1::UpdateCatalogRequest request;
    request.set_name("window");
    request.add_key_fields()->set_name("k");
    request.mutable_key_fields(0)->set_temperature(2);
    request.mutable_update_mask()->add_paths("temperature");
    v1::UpdateCatalogResponse response;
    const grpc::Status status =
        catalog_stub_->UpdateCatalog(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  grpc::ClientContext context;
  v1::GetCatalogRequest request;
  request.set_name("window");
  v1::GetCatalogResponse response;
  ASSERT_TRUE(catalog_stub_->GetCatalog(&context, request, &response).ok());
  EXPECT_EQ(response.catalog().name(), "shop");
  EXPECT_EQ(response.catalog().item_count(), 4);
  EXPECT_EQ(response.catalog().schema().key_fields(0).temperature(), 2);
}

TEST_F(AliasServiceTest, SaysWhatItNamedAndNames) {
  CreateEmpty("other");
  v1::SetAliasResponse response;
  ASSERT_TRUE(Set("window", "shop", "", &response).ok());
  EXPECT_EQ(response.previous_catalog(), "");
  ASSERT_TRUE(Set("window", "other", "shop", &response).ok());
  EXPECT_EQ(response.previous_catalog(), "shop");
  EXPECT_EQ(response.alias().catalog(), "other");
  {
    grpc::ClientContext context;
    v1::GetAliasRequest request;
    request.set_alias("window");
    v1::GetAliasResponse got;
    ASSERT_TRUE(alias_stub_->GetAlias(&context, request, &got).ok());
    EXPECT_EQ(got.alias().catalog(), "other");
  }
  ASSERT_TRUE(Set("door", "shop").ok());
  v1::ListAliasesRequest request;
  request.set_page_size(1);
  std::string names;
  do {
    grpc::ClientContext context;
    v1::ListAliasesResponse page;
    ASSERT_TRUE(alias_stub_->ListAliases(&context, request, &page).ok());
    for (const v1::Alias& alias : page.aliases()) names += alias.name() + " ";
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(names, "door window ");
}

TEST_F(AliasServiceTest, RefusalsNameWhatIsWrong) {
  EXPECT_EQ(Set("", "shop").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  grpc::Status status = Set("window", "");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(DetailsOf(status)), "catalog");
  EXPECT_EQ(Set("window", "none").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Set("shop", "shop").error_code(), grpc::StatusCode::ALREADY_EXISTS);
  ASSERT_TRUE(Set("window", "shop").ok());
  EXPECT_EQ(Set("window", "shop", "").error_code(), grpc::StatusCode::ABORTED);
  v1::CreateCatalogRequest create;
  create.set_name("window");
  auto* field = create.mutable_schema()->add_key_fields();
  field->set_name("k");
  field->set_dimension(2);
  EXPECT_EQ(Create(create).error_code(), grpc::StatusCode::ALREADY_EXISTS);

  grpc::ClientContext context;
  v1::DeleteCatalogRequest request;
  request.set_name("shop");
  v1::DeleteCatalogResponse response;
  status = catalog_stub_->DeleteCatalog(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "CATALOG_HAS_ALIAS");
  EXPECT_EQ(MetadataIn(status, "catalog"), "shop");
  EXPECT_EQ(MetadataIn(status, "alias"), "window");
  EXPECT_THAT(status.error_message(), HasSubstr("'window'"));
  ASSERT_TRUE(Delete("window").ok());
  status = Delete("window");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "ALIAS_NOT_FOUND");
  EXPECT_EQ(Attend(Query("window")).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(AliasServiceTest, MovesUnderLoadWithoutAnError) {
  CreateEmpty("other");
  ASSERT_TRUE(Set("window", "shop").ok());
  std::atomic<bool> stop = false;
  std::atomic<int> answers_of_shop = 0;
  std::atomic<int> answers_of_other = 0;
  std::atomic<int> failures = 0;
  std::thread reader([&] {
    while (!stop.load()) {
      v1::AttendResponse answer;
      if (!Attend(Query("window"), &answer).ok()) ++failures;
      if (answer.items_size() == 3) ++answers_of_shop;
      if (answer.items_size() == 0) ++answers_of_other;
    }
  });
  for (int i = 0; i < 20 || answers_of_shop == 0 || answers_of_other == 0;
       ++i) {
    ASSERT_TRUE(Set("window", i % 2 == 0 ? "other" : "shop").ok());
    ASSERT_LT(i, 10000);
  }
  stop.store(true);
  reader.join();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace attendant
