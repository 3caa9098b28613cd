// Imports: streams of items in which each message is acknowledged.
#include "service/handlers/import_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "core/base/fail_point.h"
#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;

class ImportTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    CreateShop();
  }

  // Sends all requests, reads a reply for each, and returns the status.
  grpc::Status Import(const std::vector<v1::ImportItemsRequest>& requests) {
    grpc::ClientContext context;
    auto stream = item_stub_->ImportItems(&context);
    replies_.clear();
    for (const auto& request : requests) {
      if (!stream->Write(request)) break;
      v1::ImportItemsResponse reply;
      if (!stream->Read(&reply)) break;
      replies_.push_back(reply);
    }
    stream->WritesDone();
    return stream->Finish();
  }

  std::vector<v1::ImportItemsResponse> replies_;
};

v1::Item NewItem(const std::string& id, const std::vector<float>& key) {
  v1::Item item;
  item.set_id(id);
  SetVector(key, &(*item.mutable_keys())["k"]);
  return item;
}

TEST_F(ImportTest, BadItemsInTheMiddleDoNotStopTheOthers) {
  v1::ImportItemsRequest first;
  first.set_catalog("shop");
  *first.add_items() = NewItem("i0", {1, 2});
  *first.add_items() = NewItem("i1", {1, 2, 3});  // refused by core
  *first.add_items() = NewItem("i2", {});         // refused in conversion
  *first.add_items() = NewItem("i3", {3, 4});
  v1::ImportItemsRequest second;
  *second.add_items() = NewItem("", {1, 2});
  *second.add_items() = NewItem("i5", {5, 6});
  ASSERT_TRUE(Import({first, second}).ok());
  ASSERT_EQ(replies_.size(), 2u);
  EXPECT_EQ(replies_[0].acknowledged_count(), 4);
  EXPECT_EQ(replies_[0].stored_count(), 2);
  ASSERT_EQ(replies_[0].failures_size(), 2);
  std::vector<std::string> failed;
  for (const auto& failure : replies_[0].failures()) {
    failed.push_back(absl::StrCat(failure.item_index(), " ", failure.id(), " ",
                                  FieldIn(failure.status())));
    EXPECT_EQ(failure.status().code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_THAT(failed,
              ElementsAre("1 i1 keys[k]", "2 i2 keys[k].floats.values"));
  EXPECT_EQ(replies_[1].acknowledged_count(), 6);
  EXPECT_EQ(replies_[1].stored_count(), 3);
  ASSERT_EQ(replies_[1].failures_size(), 1);
  EXPECT_EQ(replies_[1].failures(0).item_index(), 4);
  EXPECT_EQ(FieldIn(replies_[1].failures(0).status()), "id");
  EXPECT_NE(replies_[0].state_token(), replies_[1].state_token());

  v1::ListItemsResponse page;
  ASSERT_TRUE(List(Parse<v1::ListItemsRequest>("catalog: 'shop'"), &page).ok());
  std::vector<std::string> ids;
  for (const auto& item : page.items()) ids.push_back(item.id());
  EXPECT_THAT(ids, ElementsAre("a", "b", "c", "i0", "i3", "i5"));
}

TEST_F(ImportTest, StreamWithoutMessagesNamesNoCatalog) {
  EXPECT_EQ(Import({}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(replies_, ::testing::SizeIs(0));
}

TEST_F(ImportTest, FirstMessageNamesTheCatalogAndNoOther) {
  v1::ImportItemsRequest message;
  *message.add_items() = NewItem("i0", {1, 2});
  grpc::Status status = Import({message});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(DetailsOf(status)), "catalog");
  message.set_catalog("none");
  EXPECT_EQ(Import({message}).error_code(), grpc::StatusCode::NOT_FOUND);
  message.set_catalog("shop");
  status = Import({message, message});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(DetailsOf(status)), "catalog");
  // The items of the first message were acknowledged and stay.
  ASSERT_EQ(replies_.size(), 1u);
  EXPECT_EQ(replies_[0].stored_count(), 1);
}

TEST_F(ImportTest, MessageOfTooManyItemsEndsTheStream) {
  v1::ImportItemsRequest small;
  small.set_catalog("shop");
  *small.add_items() = NewItem("i0", {1, 2});
  v1::ImportItemsRequest large;
  for (int i = 0; i <= kMaxImportBatchSize; ++i) {
    *large.add_items() = NewItem(absl::StrCat("l", i), {1, 2});
  }
  const grpc::Status status = Import({small, large});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "OVER_LIMIT");
  ASSERT_EQ(replies_.size(), 1u);
  EXPECT_EQ(catalogs_->Get("shop").value()->snapshot()->item_count(), 4);
  large.mutable_items()->RemoveLast();
  large.set_catalog("shop");
  EXPECT_TRUE(Import({large}).ok());
  EXPECT_EQ(replies_[0].stored_count(), kMaxImportBatchSize);
}

TEST_F(ImportTest, WritesAheadAreAllAcknowledgedInOrder) {
  // The client writes everything before it reads: flow control holds the data
  // back, and it does not accumulate in memory.
  constexpr int kMessageCount = 200;
  grpc::ClientContext context;
  auto stream = item_stub_->ImportItems(&context);
  std::thread writer([&] {
    for (int i = 0; i < kMessageCount; ++i) {
      v1::ImportItemsRequest request;
      if (i == 0) request.set_catalog("shop");
      *request.add_items() = NewItem(absl::StrCat("w", i), {1, 2});
      EXPECT_TRUE(stream->Write(request));
    }
    stream->WritesDone();
  });
  v1::ImportItemsResponse reply;
  int count = 0;
  while (stream->Read(&reply)) EXPECT_EQ(reply.acknowledged_count(), ++count);
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(count, kMessageCount);
}

class FullQueueTest : public ImportTest {
 protected:
  void SetUp() override {
    options_.max_waiting_count = 1;
    ImportTest::SetUp();
  }
};

TEST_F(FullQueueTest, AnImportThatWasBegunGoesOn) {
  grpc::ClientContext context;
  auto stream = item_stub_->ImportItems(&context);
  v1::ImportItemsRequest request;
  request.set_catalog("shop");
  ASSERT_TRUE(stream->Write(request));
  v1::ImportItemsResponse reply;
  ASSERT_TRUE(stream->Read(&reply));

  // The turn ends shortly after the reply.
  ASSERT_TRUE(AwaitGauge("attendant_busy_workers", "write", 0));
  // As many writes of the catalog are running as may run, and as many wait.
  ASSERT_OK(ArmFailPoint("log.before_sync=wait"));
  const absl::Cleanup disarm = [] { ArmFailPoint("").IgnoreError(); };
  const auto write = [&] {
    v1::BatchUpsertItemsRequest upsert;
    upsert.set_catalog("shop");
    *upsert.add_items() = NewItem("other", {1, 2});
    return Upsert(upsert).error_code();
  };
  std::vector<std::thread> writers;
  for (int i = 0; i < 9; ++i) {
    writers.emplace_back([&] { EXPECT_EQ(write(), grpc::StatusCode::OK); });
    EXPECT_TRUE(
        AwaitGauge("attendant_busy_workers", "write", std::min(i + 1, 8)));
  }
  EXPECT_TRUE(AwaitGauge("attendant_queue_depth", "write", 1));
  EXPECT_EQ(write(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  request.clear_catalog();
  *request.add_items() = NewItem("own", {1, 2});
  EXPECT_TRUE(stream->Write(request));
  EXPECT_TRUE(AwaitGauge("attendant_queue_depth", "write", 2));
  EXPECT_OK(ArmFailPoint(""));
  EXPECT_TRUE(stream->Read(&reply));
  EXPECT_EQ(reply.stored_count(), 1);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  for (std::thread& writer : writers) writer.join();
}

TEST_F(ImportTest, CatalogDeletedMeanwhileEndsTheStream) {
  grpc::ClientContext context;
  auto stream = item_stub_->ImportItems(&context);
  v1::ImportItemsRequest request;
  request.set_catalog("shop");
  ASSERT_TRUE(stream->Write(request));
  v1::ImportItemsResponse reply;
  ASSERT_TRUE(stream->Read(&reply));
  ASSERT_OK(catalogs_->Delete("shop"));
  request.clear_catalog();
  *request.add_items() = NewItem("late", {1, 2});
  stream->Write(request);
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace attendant
