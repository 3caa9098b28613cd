#include "service/background_log.h"

#include <gmock/gmock.h>

#include <cmath>
#include <new>
#include <string>
#include <vector>

#include "core/base/fail_point.h"
#include "tests/service/server_fixture.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BackgroundChangesTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    v1::CreateCatalogRequest request;
    request.set_name("shop");
    v1::KeyField& field = *request.mutable_schema()->add_key_fields();
    field.set_name("k");
    field.set_dimension(2);
    field.set_index_kind(v1::INDEX_KIND_IVF);
    ASSERT_TRUE(Create(request).ok());
  }

  // Writes items on a circle with ids that begin with `prefix`, and waits for
  // the index.
  void Write(const std::string& prefix) {
    for (int batch = 0; batch < 8; ++batch) {
      v1::BatchUpsertItemsRequest request;
      request.set_catalog("shop");
      for (int i = 250 * batch; i < 250 * (batch + 1); ++i) {
        v1::Item& item = *request.add_items();
        item.set_id(absl::StrCat(prefix, i));
        auto* floats = (*item.mutable_keys())["k"].mutable_floats();
        floats->add_values(static_cast<float>(std::cos(i)));
        floats->add_values(static_cast<float>(std::sin(i)));
      }
      const grpc::Status status = Upsert(request);
      ASSERT_TRUE(status.ok()) << status.error_message();
    }
    ASSERT_OK_AND_ASSIGN(const auto catalog, catalogs_->Get("shop"));
    catalog->AwaitIndexes();
  }

  v1::Catalog Listed() {
    grpc::ClientContext context;
    v1::ListCatalogsResponse response;
    EXPECT_TRUE(
        catalog_stub_
            ->ListCatalogs(&context, v1::ListCatalogsRequest(), &response)
            .ok());
    return response.catalogs(0);
  }

  // Returns the names of the events that Look reports, in order.
  std::vector<std::string> Look() {
    std::vector<std::string> events;
    changes_.Look(*catalogs_, [&](const BackgroundChanges::Change& change) {
      EXPECT_EQ(change.catalog, "shop");
      events.push_back(absl::StrCat(change.event, ": ",
                                    std::string(change.status.message())));
    });
    return events;
  }

  BackgroundChanges changes_;
};

TEST_F(BackgroundChangesTest, SegmentFilesThatCantBeWrittenAreToldOnce) {
  EXPECT_THAT(Look(), IsEmpty());
  ASSERT_OK(ArmFailPoint("segments.before_manifest=error"));
  Write("a");
  ASSERT_OK(ArmFailPoint(""));
  EXPECT_THAT(Look(),
              ElementsAre(HasSubstr("segment_files_not_written: fail point")));
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_THAT(Describe("shop").segment_files_error(), HasSubstr("fail point"));
  EXPECT_THAT(Describe("shop").warnings(),
              testing::Contains(HasSubstr("could not be written")));
  EXPECT_THAT(Listed().warnings(),
              ElementsAre(HasSubstr("could not be written")));
  EXPECT_TRUE(server_->readiness().ready());
  EXPECT_THAT(server_->readiness().warnings,
              ElementsAre(AllOf(HasSubstr("'shop'"), HasSubstr("fail point"))));

  Write("b");
  EXPECT_THAT(Look(), ElementsAre("segment_files_written: "));
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_EQ(Describe("shop").segment_files_error(), "");
  EXPECT_THAT(Listed().warnings(), IsEmpty());
  EXPECT_THAT(server_->readiness().warnings, IsEmpty());
}

TEST_F(BackgroundChangesTest, WhatCouldNotBeLoggedIsToldAgain) {
  ASSERT_OK(ArmFailPoint("segments.before_manifest=error"));
  Write("a");
  ASSERT_OK(ArmFailPoint(""));
  EXPECT_THROW(changes_.Look(*catalogs_,
                             [](const BackgroundChanges::Change&) {
                               throw std::bad_alloc();
                             }),
               std::bad_alloc);
  EXPECT_THAT(Look(), ElementsAre(HasSubstr("segment_files_not_written")));
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(BackgroundChangesTest, ADeletedCatalogIsForgotten) {
  ASSERT_OK(ArmFailPoint("segments.before_manifest=error"));
  Write("a");
  ASSERT_OK(ArmFailPoint(""));
  EXPECT_THAT(Look(), ElementsAre(HasSubstr("segment_files_not_written")));
  ASSERT_OK(catalogs_->Delete("shop"));
  EXPECT_THAT(Look(), IsEmpty());
}

}  // namespace
}  // namespace attendant
