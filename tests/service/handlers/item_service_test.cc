// Items over gRPC: rewritten, and listed in pages.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;

using ServerTest = ServerFixture;

TEST_F(ServerTest, RequestIdMakesAWriteSafeToRepeat) {
  CreateShop();
  auto request = Parse<v1::BatchUpsertItemsRequest>(
      "catalog: 'shop' request_id: 'r1' items { id: 'd' keys { key: 'k' value "
      "{ floats { values: [5, 5] } } } }");
  v1::BatchUpsertItemsResponse first;
  ASSERT_TRUE(Upsert(request, &first).ok());
  EXPECT_EQ(first.inserted_count(), 1);
  v1::BatchUpsertItemsResponse second;
  ASSERT_TRUE(Upsert(request, &second).ok());
  EXPECT_EQ(second.SerializeAsString(), first.SerializeAsString());
  request.mutable_items(0)->set_id("e");
  const grpc::Status status = Upsert(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(DetailsOf(status)), "request_id");
  request.set_request_id("r2");
  v1::BatchUpsertItemsResponse third;
  ASSERT_TRUE(Upsert(request, &third).ok());
  EXPECT_NE(third.state_token(), first.state_token());

  const auto remove = Parse<v1::BatchDeleteItemsRequest>(
      "catalog: 'shop' ids: 'e' ids: 'nope' request_id: 'r3'");
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    v1::BatchDeleteItemsResponse removed;
    ASSERT_TRUE(item_stub_->BatchDeleteItems(&context, remove, &removed).ok());
    EXPECT_EQ(removed.deleted_count(), 1);
    EXPECT_EQ(removed.missing_count(), 1);
  }
}

TEST_F(ServerTest, ItemsAreListedByIdInPages) {
  CreateShop();
  std::vector<std::string> ids;
  auto request = Parse<v1::ListItemsRequest>(
      "catalog: 'shop' page_size: 2 read_mask { paths: 'attributes' }");
  do {
    v1::ListItemsResponse page;
    ASSERT_TRUE(List(request, &page).ok());
    EXPECT_LE(page.items_size(), 2);
    for (const auto& item : page.items()) {
      ids.push_back(item.id());
      EXPECT_EQ(item.keys_size(), 0);
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(ids, ElementsAre("a", "b", "c"));
}

TEST_F(ServerTest, AFilterChoosesWhatIsListed) {
  CreateShop();
  auto request = Parse<v1::ListItemsRequest>(
      "catalog: 'shop' page_size: 1 filter: 'price > 1'");
  std::vector<std::string> ids;
  do {
    v1::ListItemsResponse page;
    ASSERT_TRUE(List(request, &page).ok());
    EXPECT_EQ(page.total_count(), 2);
    for (const auto& item : page.items()) {
      ids.push_back(item.id());
      EXPECT_EQ(item.keys_size(), 1);
      EXPECT_EQ(item.sequence(), 1);
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(ids, ElementsAre("a", "b"));

  v1::ListItemsResponse page;
  request = Parse<v1::ListItemsRequest>(
      "catalog: 'shop' filter_expression { negation { comparison { "
      "attribute: 'price' kind: COMPARISON_KIND_GREATER value { double_value: "
      "2 } } } }");
  ASSERT_TRUE(List(request, &page).ok());
  ASSERT_EQ(page.items_size(), 2);
  EXPECT_EQ(page.items(0).id(), "a");
  EXPECT_EQ(page.items(1).id(), "c");
  EXPECT_EQ(page.total_count(), 2);
  ASSERT_TRUE(
      List(Parse<v1::ListItemsRequest>("catalog: 'shop' filter: 'price > 9'"),
           &page)
          .ok());
  EXPECT_EQ(page.items_size(), 0);
  EXPECT_EQ(page.next_page_token(), "");
  ASSERT_TRUE(List(Parse<v1::ListItemsRequest>("catalog: 'shop'"), &page).ok());
  EXPECT_EQ(page.total_count(), 3);
}

// An item is read after the filter was evaluated, and may have changed between.
TEST_F(ServerTest, ListedItemsMatchWhileOthersWrite) {
  CreateShop();
  std::atomic<bool> done = false;
  std::thread writer([&] {
    auto request = Parse<v1::BatchUpdateItemsRequest>("catalog: 'shop'");
    for (const char* id : {"a", "b", "c"}) request.add_items()->set_id(id);
    for (int i = 0; !done; ++i) {
      for (v1::Item& item : *request.mutable_items()) {
        (*item.mutable_attributes())["price"].set_double_value(i % 2);
      }
      grpc::ClientContext context;
      v1::BatchUpdateItemsResponse response;
      EXPECT_TRUE(
          item_stub_->BatchUpdateItems(&context, request, &response).ok());
    }
  });
  const auto request =
      Parse<v1::ListItemsRequest>("catalog: 'shop' filter: 'price = 1'");
  std::int64_t count = 0;
  const SteadyTime give_up = SteadyAfter(absl::Minutes(1));
  for (int i = 0; (i < 2000 || count == 0) && SteadyNow() < give_up; ++i) {
    v1::ListItemsResponse page;
    EXPECT_TRUE(List(request, &page).ok());
    for (const v1::Item& item : page.items()) {
      EXPECT_EQ(item.attributes().at("price").double_value(), 1);
    }
    count += page.items_size();
  }
  done = true;
  writer.join();
  EXPECT_GT(count, 0);
}

// A conditional write would remove an attribute that a read with the item's
// sequence has left out.
TEST_F(ServerTest, ItemsComeWithTheAttributesOfTheirSequence) {
  CreateShop();
  constexpr int kAdded = 100;
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < kAdded; ++i) {
      v1::UpdateCatalogRequest add;
      add.set_name("shop");
      v1::AttributeField& attribute = *add.add_new_attributes();
      attribute.set_name(absl::StrCat("a", i));
      attribute.set_type(v1::ATTRIBUTE_TYPE_BOOL);
      EXPECT_TRUE(UpdateCatalog(add).ok());
      auto update = Parse<v1::BatchUpdateItemsRequest>(
          "catalog: 'shop' items { id: 'a' }");
      (*update.mutable_items(0)->mutable_attributes())[attribute.name()]
          .set_bool_value(true);
      grpc::ClientContext context;
      v1::BatchUpdateItemsResponse response;
      EXPECT_TRUE(
          item_stub_->BatchUpdateItems(&context, update, &response).ok());
    }
    done = true;
  });
  const absl::Cleanup join = [&writer] { writer.join(); };
  // All items match this filter, which takes a while to say so: between the
  // schema that a list begins with and the items that it reads.
  auto list = Parse<v1::ListItemsRequest>("catalog: 'shop' page_size: 1");
  auto& any = *list.mutable_filter_expression()->mutable_any_of();
  for (int i = 0; i < 20; ++i) {
    auto& none = *any.add_filters()->mutable_negation()->mutable_membership();
    none.set_attribute("price");
    for (int value = 100; value < 1100; ++value) {
      none.add_values()->set_double_value(value);
    }
  }
  const auto get = Parse<v1::BatchGetItemsRequest>(
      "catalog: 'shop' ids: 'a' read_mask { paths: 'attributes' }");
  while (!done) {
    v1::ListItemsResponse page;
    EXPECT_TRUE(List(list, &page).ok());
    grpc::ClientContext context;
    v1::BatchGetItemsResponse got;
    EXPECT_TRUE(item_stub_->BatchGetItems(&context, get, &got).ok());
    for (const auto* items : {&page.items(), &got.items()}) {
      ASSERT_EQ(items->size(), 1);
      // Two at first, and one more of each later write.
      EXPECT_EQ(items->Get(0).attributes_size(), 1 + items->Get(0).sequence());
    }
  }
}

TEST_F(ServerTest, AListingGoesOnWhenAttributesAreAdded) {
  CreateShop();
  for (const char* mask :
       {"", "read_mask { paths: 'attributes' }", "read_mask { paths: '*' }"}) {
    SCOPED_TRACE(mask);
    v1::ListItemsRequest request;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("catalog: 'shop' page_size: 2 ", mask), &request));
    v1::ListItemsResponse page;
    ASSERT_TRUE(List(request, &page).ok());
    v1::UpdateCatalogRequest add;
    add.set_name("shop");
    v1::AttributeField& attribute = *add.add_new_attributes();
    attribute.set_name(
        absl::StrCat("a", Describe("shop").schema().attributes_size()));
    attribute.set_type(v1::ATTRIBUTE_TYPE_BOOL);
    ASSERT_TRUE(UpdateCatalog(add).ok());
    request.set_page_token(page.next_page_token());
    ASSERT_TRUE(List(request, &page).ok());
    ASSERT_EQ(page.items_size(), 1);
    EXPECT_EQ(page.items(0).id(), "c");
  }
}

TEST_F(ServerTest, AListingsFilterIsCheckedAndStaysTheSame) {
  CreateShop();
  const auto refuse = [&](const v1::ListItemsRequest& request,
                          const std::string& field) {
    const grpc::Status status = List(request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldIn(DetailsOf(status)), field);
  };
  auto request = Parse<v1::ListItemsRequest>(
      "catalog: 'shop' page_size: 1 filter: 'size > 1'");
  refuse(request, "filter");
  request.set_filter("price > 1");
  v1::ListItemsResponse page;
  ASSERT_TRUE(List(request, &page).ok());
  request.set_page_token(page.next_page_token());
  request.set_filter("price > 2");
  refuse(request, "page_token");
  request.clear_filter();
  refuse(request, "page_token");
  // Any filter makes a short token.
  request.set_page_token("");
  request.set_filter("price > 1 AND NOT name = \"" + std::string(9000, 'x') +
                     "\"");
  ASSERT_TRUE(List(request, &page).ok());
  EXPECT_LT(page.next_page_token().size(), 100u);
}

TEST_F(ServerTest, PageEndsBeforeItOutgrowsAMessage) {
  ASSERT_TRUE(Create(Parse<v1::CreateCatalogRequest>(
                         "name: 'wide' schema { key_fields { name: 'k' "
                         "dimension: 8192 } }"))
                  .ok());
  // 600 items of 32 KiB are 18.75 MiB, more than a message.
  constexpr int kCount = 600;
  const std::string key(8192 * sizeof(float), '\0');
  for (int first = 0; first < kCount; first += 100) {
    v1::BatchUpsertItemsRequest request;
    request.set_catalog("wide");
    for (int i = first; i < first + 100; ++i) {
      v1::Item* item = request.add_items();
      item->set_id(absl::StrCat(1000 + i));
      (*item->mutable_keys())["k"].set_float32_le(key);
    }
    ASSERT_TRUE(Upsert(request).ok());
  }
  // The client also accepts pages up to a whole message.
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(16 << 20);
  item_stub_ = v1::ItemService::NewStub(
      grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                grpc::InsecureChannelCredentials(), arguments));
  auto request = Parse<v1::ListItemsRequest>("catalog: 'wide' page_size: 1000");
  int count = 0;
  int page_count = 0;
  do {
    v1::ListItemsResponse page;
    const grpc::Status status = List(request, &page);
    ASSERT_TRUE(status.ok()) << status.error_message();
    for (const auto& item : page.items()) {
      EXPECT_EQ(item.id(), absl::StrCat(1000 + count++));
    }
    request.set_page_token(page.next_page_token());
    ++page_count;
  } while (!request.page_token().empty());
  EXPECT_EQ(count, kCount);
  EXPECT_EQ(page_count, 2);
}

}  // namespace
}  // namespace attendant
