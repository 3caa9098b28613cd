// Catalogs over gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
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

}  // namespace
}  // namespace attendant
