// Catalogs over gRPC.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using ServerTest = ServerFixture;

TEST_F(ServerTest, CatalogsAreListedByNameInPages) {
  for (const char* name : {"b", "c", "a"}) {
    ASSERT_TRUE(CreateEmpty(name).ok());
  }
  std::vector<std::string> names;
  v1::ListCatalogsRequest request;
  request.set_page_size(2);
  int page_count = 0;
  do {
    grpc::ClientContext context;
    v1::ListCatalogsResponse response;
    ASSERT_TRUE(catalog_stub_->ListCatalogs(&context, request, &response).ok());
    for (const auto& catalog : response.catalogs()) {
      names.push_back(catalog.name());
    }
    request.set_page_token(response.next_page_token());
    ++page_count;
  } while (!request.page_token().empty());
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
  EXPECT_EQ(page_count, 2);
}

TEST_F(ServerTest, CatalogIsDescribedUpdatedAndDeleted) {
  CreateShop();
  grpc::ClientContext get;
  v1::GetCatalogResponse got;
  const auto name = Parse<v1::GetCatalogRequest>("name: 'shop'");
  ASSERT_TRUE(catalog_stub_->GetCatalog(&get, name, &got).ok());
  EXPECT_EQ(got.catalog().item_count(), 3);
  EXPECT_EQ(got.catalog().sequence(), 1);
  EXPECT_EQ(got.catalog().schema().key_fields(0).temperature(), 1);
  ASSERT_EQ(got.catalog().indexes_size(), 1);
  EXPECT_EQ(got.catalog().indexes(0).key_field(), "k");
  EXPECT_EQ(got.catalog().indexes(0).key_count(), 3);
  EXPECT_EQ(got.catalog().indexes(0).active_kind(), v1::INDEX_KIND_FLAT);
  EXPECT_FALSE(got.catalog().indexes(0).has_measured_recall());
  const v1::MemoryUse& memory = got.catalog().memory();
  EXPECT_EQ(memory.key_bytes(), 3 * 2 * 4);
  EXPECT_EQ(memory.code_bytes(), 0);
  EXPECT_GT(memory.id_bytes(), 0);
  EXPECT_GT(memory.database_bytes(), 0);
  EXPECT_EQ(got.catalog().memory_bytes(),
            memory.key_bytes() + memory.index_bytes() +
                memory.attribute_bytes() + memory.value_bytes() +
                memory.id_bytes() + memory.database_bytes());
  EXPECT_GT(got.catalog().create_time().seconds(), 1700000000);
  EXPECT_THAT(got.catalog().warnings(), IsEmpty());

  grpc::ClientContext update;
  v1::UpdateCatalogResponse updated;
  ASSERT_TRUE(catalog_stub_
                  ->UpdateCatalog(
                      &update,
                      Parse<v1::UpdateCatalogRequest>(
                          "name: 'shop' key_fields { name: 'k' temperature: "
                          "0.5 } update_mask { paths: 'temperature' }"),
                      &updated)
                  .ok());
  EXPECT_EQ(updated.catalog().schema().key_fields(0).temperature(), 0.5);
  v1::AttendResponse answer;
  ASSERT_TRUE(Attend(Parse<v1::AttendRequest>(
                         "catalog: 'shop' query { vector { floats { values: "
                         "[1, 0] } } }"),
                     &answer)
                  .ok());
  EXPECT_EQ(answer.temperature(), 0.5);

  grpc::ClientContext remove;
  v1::DeleteCatalogResponse removed;
  ASSERT_TRUE(catalog_stub_
                  ->DeleteCatalog(
                      &remove, Parse<v1::DeleteCatalogRequest>("name: 'shop'"),
                      &removed)
                  .ok());
  grpc::ClientContext again;
  EXPECT_EQ(catalog_stub_->GetCatalog(&again, name, &got).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServerTest, AttributesMayBeAddedLater) {
  CreateShop();
  const auto request = Parse<v1::UpdateCatalogRequest>(
      "name: 'shop' new_attributes { name: 'sold' type: ATTRIBUTE_TYPE_INT64 } "
      "new_attributes { name: 'price' type: ATTRIBUTE_TYPE_DOUBLE }");
  // The second time changes nothing.
  for (int i = 0; i < 2; ++i) {
    v1::UpdateCatalogResponse updated;
    const grpc::Status status = UpdateCatalog(request, &updated);
    ASSERT_TRUE(status.ok()) << status.error_message();
    const auto& attributes = updated.catalog().schema().attributes();
    ASSERT_EQ(attributes.size(), 3);
    EXPECT_EQ(attributes[2].name(), "sold");
    EXPECT_EQ(attributes[2].type(), v1::ATTRIBUTE_TYPE_INT64);
  }
  v1::AttendRequest sold = Query("shop");
  sold.set_filter("sold >= 7");
  EXPECT_THAT(Answer(sold).items(), IsEmpty());
  grpc::ClientContext context;
  v1::BatchUpdateItemsResponse updated;
  ASSERT_TRUE(item_stub_
                  ->BatchUpdateItems(
                      &context,
                      Parse<v1::BatchUpdateItemsRequest>(
                          "catalog: 'shop' items { id: 'b' attributes { key: "
                          "'sold' value { int64_value: 8 } } }"),
                      &updated)
                  .ok());
  const v1::AttendResponse answer = Answer(sold);
  ASSERT_EQ(answer.items_size(), 1);
  EXPECT_EQ(answer.items(0).id(), "b");
}

TEST_F(ServerTest, AttributesThatCanNotBeAddedAreNamed) {
  CreateShop();
  const auto refuse = [&](const std::string& fields, const std::string& field,
                          const std::string& message,
                          grpc::StatusCode code =
                              grpc::StatusCode::INVALID_ARGUMENT) {
    v1::UpdateCatalogRequest request;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("name: 'shop' ", fields), &request));
    const grpc::Status status = UpdateCatalog(request);
    EXPECT_EQ(status.error_code(), code);
    EXPECT_EQ(FieldIn(DetailsOf(status)), field);
    EXPECT_THAT(status.error_message(), HasSubstr(message));
  };
  refuse("", "key_fields", "key_fields or text_encoders to change, or new");
  refuse("new_attributes { name: 'sold' }", "new_attributes[0].type", "UNSPEC");
  refuse("new_attributes { name: 'Sold' type: ATTRIBUTE_TYPE_BOOL }",
         "new_attributes[0].name", "\"Sold\"");
  refuse(
      "new_attributes { name: 'sold' type: ATTRIBUTE_TYPE_BOOL } "
      "new_attributes { name: 'price' type: ATTRIBUTE_TYPE_INT64 }",
      "new_attributes[1].type",
      "got an int64, want a double, as 'price' is declared");
  refuse(
      "new_attributes { name: 'sold' type: ATTRIBUTE_TYPE_BOOL } "
      "new_attributes { name: 'sold' type: ATTRIBUTE_TYPE_INT64 }",
      "new_attributes[1].type", "as 'sold' is declared");
  std::string many;
  for (int i = 0; i < 255; ++i) {
    absl::StrAppend(&many, "new_attributes { name: 'a", i,
                    "' type: ATTRIBUTE_TYPE_BOOL } ");
  }
  refuse(many, "new_attributes",
         "got 257 with those of the catalog, want at most 256",
         grpc::StatusCode::RESOURCE_EXHAUSTED);
  // Counted before they are compared, however few are new.
  std::string same;
  for (int i = 0; i < 257; ++i) {
    same += "new_attributes { name: 'price' type: ATTRIBUTE_TYPE_DOUBLE } ";
  }
  refuse(same, "new_attributes", "got 257, want 0 to 256",
         grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Describe("shop").schema().attributes_size(), 2);
}

}  // namespace
}  // namespace attendant
