// Aliases through a real server: every request that names a catalog.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

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
  }

  grpc::Status Delete(const std::string& alias) {
    grpc::ClientContext context;
    v1::DeleteAliasRequest request;
    request.set_alias(alias);
    v1::DeleteAliasResponse response;
    return alias_stub_->DeleteAlias(&context, request, &response);
  }
};

TEST_F(AliasServiceTest, ServesWhereverACatalogIsNamed) {
  ASSERT_TRUE(SetAlias("window", "shop").ok());
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
  v1::UpdateCatalogRequest update;
  update.set_name("window");
  update.add_key_fields()->set_name("k");
  update.mutable_key_fields(0)->set_temperature(2);
  update.mutable_update_mask()->add_paths("temperature");
  const grpc::Status status = UpdateCatalog(update);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const v1::Catalog catalog = Describe("window");
  EXPECT_EQ(catalog.name(), "shop");
  EXPECT_EQ(catalog.item_count(), 4);
  EXPECT_EQ(catalog.schema().key_fields(0).temperature(), 2);
}

TEST_F(AliasServiceTest, SaysWhatItNamedAndNames) {
  ASSERT_TRUE(CreateEmpty("other").ok());
  v1::SetAliasResponse response;
  ASSERT_TRUE(SetAlias("window", "shop", "", &response).ok());
  EXPECT_EQ(response.previous_catalog(), "");
  ASSERT_TRUE(SetAlias("window", "other", "shop", &response).ok());
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
  ASSERT_TRUE(SetAlias("door", "shop").ok());
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
  EXPECT_EQ(SetAlias("", "shop").error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  grpc::Status status = SetAlias("window", "");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(DetailsOf(status)), "catalog");
  EXPECT_EQ(SetAlias("window", "none").error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(SetAlias("shop", "shop").error_code(),
            grpc::StatusCode::ALREADY_EXISTS);
  ASSERT_TRUE(SetAlias("window", "shop").ok());
  EXPECT_EQ(SetAlias("window", "shop", "").error_code(),
            grpc::StatusCode::ABORTED);
  status = SetAlias("window", "shop", "A b");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(DetailsOf(status)), "expected_catalog");
  EXPECT_EQ(CreateEmpty("window").error_code(),
            grpc::StatusCode::ALREADY_EXISTS);

  status = DeleteCatalog("shop");
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
  ASSERT_TRUE(CreateEmpty("other").ok());
  ASSERT_TRUE(SetAlias("window", "shop").ok());
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
    ASSERT_TRUE(SetAlias("window", i % 2 == 0 ? "other" : "shop").ok());
    ASSERT_LT(i, 10000);
  }
  stop.store(true);
  reader.join();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace attendant
