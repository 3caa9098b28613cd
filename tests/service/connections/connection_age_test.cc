// Connections and streams that would last for ever, and ones that may continue.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/base/clock.h"
#include "tests/service/raw_call.h"
#include "tests/service/server_fixture.h"

namespace attendant {
namespace {

class ConnectionAgeTest : public ServerFixture {
 protected:
  // Starts the server with the catalog "shop".
  void StartWith(const TransportLimits& limits) {
    options_.transport = limits;
    ServerFixture::SetUp();
    CreateShop();
  }
  void SetUp() override {}

  static v1::ImportItemsRequest OneItem() {
    v1::ImportItemsRequest request;
    v1::Item& item = *request.add_items();
    item.set_id("a");
    SetVector(std::vector<float>{1, 0}, &(*item.mutable_keys())["k"]);
    return request;
  }
};

TEST_F(ConnectionAgeTest, AWatchOfHealthEnds) {
  StartWith({.age_seconds = 1, .age_grace_seconds = 1});
  RawCall watch(channel_, "/grpc.health.v1.Health/Watch");
  ASSERT_TRUE(watch.Write(""));
  ASSERT_TRUE(watch.Read().has_value());
  // Nothing arrives before its end.
  EXPECT_FALSE(watch.Read().has_value());
  EXPECT_EQ(watch.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ConnectionAgeTest, NoQueryFailsAndNoImportEndsBeforeTheGrace) {
  StartWith({.age_seconds = 1, .age_grace_seconds = 3600});
  grpc::ClientContext context;
  const auto import = item_stub_->ImportItems(&context);
  v1::ImportItemsRequest request = OneItem();
  request.set_catalog("shop");
  // Goes beyond the maximum age, with calls at all times.
  const SteadyTime end = SteadyAfter(absl::Milliseconds(1500));
  while (SteadyNow() < end) {
    ASSERT_TRUE(import->Write(request));
    request.clear_catalog();
    v1::ImportItemsResponse response;
    ASSERT_TRUE(import->Read(&response));
    const grpc::Status status = Attend(Query("shop"));
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  import->WritesDone();
  EXPECT_TRUE(import->Finish().ok());
}

TEST_F(ConnectionAgeTest, AnImportThatFallsSilentIsCancelled) {
  StartWith({.idle_seconds = 1});
  RawCall items(channel_, "/attendant.v1.ItemService/ImportItems");
  RawCall snapshot(channel_, "/attendant.v1.SnapshotService/ImportSnapshot");
  grpc::ClientContext context;
  const auto begun = item_stub_->ImportItems(&context);
  v1::ImportItemsRequest request = OneItem();
  request.set_catalog("shop");
  v1::ImportItemsResponse response;
  ASSERT_TRUE(begun->Write(request));
  ASSERT_TRUE(begun->Read(&response));
  EXPECT_FALSE(begun->Read(&response));
  EXPECT_EQ(begun->Finish().error_code(), grpc::StatusCode::CANCELLED);
  for (RawCall* silent : {&items, &snapshot}) {
    EXPECT_FALSE(silent->Read().has_value());
    EXPECT_EQ(silent->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  // Acknowledged items stay.
  EXPECT_TRUE(Attend(Query("shop")).ok());
}

}  // namespace
}  // namespace attendant
