// Acknowledged writes survive a restart.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/integration/requests.h"
#include "tests/integration/server_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

TEST(RestartTest, BringsBackCatalogsItemsAndAnswers) {
  const ScratchDirectory data;
  v1::AttendRequest request;
  request.set_catalog("plane");
  *request.mutable_query()->mutable_vector() = VectorOf({1, 2});
  request.mutable_read_mask()->add_paths("attributes");
  request.mutable_read_mask()->add_paths("opaque_value");
  v1::AttendResponse before;
  v1::Catalog described;
  {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
    ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
    ASSERT_OK(CreateCatalog(*client, "plane",
                            {KeyFieldOf("key", 2, v1::SCORE_KIND_DOT)}));
    v1::BatchUpsertItemsRequest upsert;
    upsert.set_catalog("plane");
    for (int i = 0; i < 200; ++i) {
      v1::Item& item = *upsert.add_items();
      item = ItemOf(absl::StrCat("item", i), "key", {i * 0.25, -i * 0.125});
      (*item.mutable_attributes())["version"].set_int64_value(i);
      item.set_opaque_value(absl::StrCat(std::string("\0\xff", 2), i));
    }
    ASSERT_OK(client->BatchUpsertItems(upsert));
    ASSERT_OK(client->BatchDeleteItems(DeleteOf("plane", {"item199"})));
    ASSERT_OK_AND_ASSIGN(before, client->Attend(request));
    EXPECT_EQ(before.items(0).opaque_value().substr(0, 2),
              std::string("\0\xff", 2));
    v1::GetCatalogRequest get;
    get.set_name("plane");
    ASSERT_OK_AND_ASSIGN(const auto got, client->GetCatalog(get));
    described = got.catalog();
    EXPECT_EQ(server->Stop(), 0);
  }
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
  ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
  v1::GetCatalogRequest get;
  get.set_name("plane");
  ASSERT_OK_AND_ASSIGN(const auto got, client->GetCatalog(get));
  EXPECT_EQ(got.catalog().uid(), described.uid());
  EXPECT_EQ(got.catalog().sequence(), described.sequence());
  EXPECT_EQ(got.catalog().item_count(), 199);
  EXPECT_TRUE(
      MessageDifferencer::Equals(got.catalog().schema(), described.schema()));
  ASSERT_OK_AND_ASSIGN(v1::AttendResponse after, client->Attend(request));
  EXPECT_EQ(after.items(0).id(), before.items(0).id());
  // The answers are equal except for timings.
  after.clear_stats();
  before.clear_stats();
  EXPECT_TRUE(MessageDifferencer::Equals(after, before))
      << after.DebugString() << before.DebugString();
}

TEST(RestartTest, ARepeatedRequestReturnsTheFirstOutcome) {
  const ScratchDirectory data;
  const v1::BatchUpsertItemsRequest upsert =
      UpsertOf("plane", {ItemOf("a", "key", {1, 0})}, "once");
  const v1::BatchDeleteItemsRequest remove =
      DeleteOf("plane", {"a"}, "removed once");
  v1::BatchUpsertItemsResponse first;
  {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
    ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
    ASSERT_OK(CreateCatalog(*client, "plane",
                            {KeyFieldOf("key", 2, v1::SCORE_KIND_DOT)}));
    ASSERT_OK_AND_ASSIGN(first, client->BatchUpsertItems(upsert));
    EXPECT_EQ(first.inserted_count(), 1);
    ASSERT_OK(client->BatchDeleteItems(remove));
    EXPECT_EQ(server->Stop(), 0);
  }
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
  ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
  ASSERT_OK_AND_ASSIGN(const auto again, client->BatchUpsertItems(upsert));
  EXPECT_TRUE(MessageDifferencer::Equals(again, first))
      << again.DebugString() << first.DebugString();
  ASSERT_OK_AND_ASSIGN(const auto removed, client->BatchDeleteItems(remove));
  EXPECT_EQ(removed.deleted_count(), 1);
  // Neither request ran again: the item stays deleted.
  ASSERT_OK_AND_ASSIGN(const auto versions, ListVersions(*client, "plane"));
  EXPECT_TRUE(versions.empty());
  EXPECT_THAT(
      client->BatchUpsertItems(
          UpsertOf("plane", {ItemOf("a", "key", {2, 0})}, "once")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("request_id")));
}

}  // namespace
}  // namespace attendant
