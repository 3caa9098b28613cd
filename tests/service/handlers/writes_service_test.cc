// Conditions, partial updates and deletes by filter, over gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

class WritesServiceTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    CreateShop();
  }

  grpc::Status UpsertText(const std::string& fields,
                          v1::BatchUpsertItemsResponse* response = nullptr) {
    return Upsert(Parse<v1::BatchUpsertItemsRequest>(
                      absl::StrCat("catalog: 'shop' ", fields)),
                  response);
  }
  grpc::Status Update(const std::string& fields,
                      v1::BatchUpdateItemsResponse* response = nullptr) {
    grpc::ClientContext context;
    v1::BatchUpdateItemsResponse ignored;
    return item_stub_->BatchUpdateItems(
        &context,
        Parse<v1::BatchUpdateItemsRequest>(
            absl::StrCat("catalog: 'shop' ", fields)),
        response != nullptr ? response : &ignored);
  }
  grpc::Status Delete(const std::string& fields) {
    grpc::ClientContext context;
    v1::BatchDeleteItemsResponse response;
    return item_stub_->BatchDeleteItems(
        &context,
        Parse<v1::BatchDeleteItemsRequest>(
            absl::StrCat("catalog: 'shop' ", fields)),
        &response);
  }
  grpc::Status DeleteMatching(const std::string& fields,
                              v1::DeleteMatchingItemsResponse* response) {
    grpc::ClientContext context;
    return item_stub_->DeleteMatchingItems(
        &context,
        Parse<v1::DeleteMatchingItemsRequest>(
            absl::StrCat("catalog: 'shop' ", fields)),
        response);
  }
  v1::Item Get(const std::string& id, const std::string& token = "") {
    grpc::ClientContext context;
    v1::BatchGetItemsRequest request;
    request.set_catalog("shop");
    request.add_ids(id);
    request.set_state_token(token);
    v1::BatchGetItemsResponse response;
    const grpc::Status status =
        item_stub_->BatchGetItems(&context, request, &response);
    return status.ok() ? response.items(0) : v1::Item();
  }
  std::string Ids() {
    v1::ListItemsResponse response;
    EXPECT_TRUE(
        List(Parse<v1::ListItemsRequest>("catalog: 'shop'"), &response).ok());
    std::string ids;
    for (const v1::Item& item : response.items()) ids += item.id();
    return ids;
  }
  static void ExpectError(const grpc::Status& status, grpc::StatusCode code,
                          const std::string& reason, const std::string& field) {
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_EQ(ReasonIn(DetailsOf(status)), reason);
    EXPECT_EQ(FieldIn(DetailsOf(status)), field);
  }

  static constexpr const char* kKey =
      " keys { key: 'k' value { floats { values: [5, 5] } } } ";
};

TEST_F(WritesServiceTest, ItemsComeWithTheSequenceOfTheirLastWrite) {
  EXPECT_EQ(Get("a").sequence(), 1);
  ASSERT_TRUE(UpsertText(absl::StrCat("items { id: 'a'", kKey, "}")).ok());
  EXPECT_EQ(Get("a").sequence(), 2);
  v1::ListItemsResponse response;
  ASSERT_TRUE(List(Parse<v1::ListItemsRequest>(
                       "catalog: 'shop' read_mask { paths: 'value' }"),
                   &response)
                  .ok());
  EXPECT_EQ(response.items(0).sequence(), 2);
  EXPECT_EQ(response.items(1).sequence(), 1);
}

TEST_F(WritesServiceTest, ItemsComeWithATokenOfTheirState) {
  v1::BatchUpsertItemsResponse written;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(item_stub_
                    ->BatchUpsertItems(
                        &context,
                        Parse<v1::BatchUpsertItemsRequest>(absl::StrCat(
                            "catalog: 'shop' items { id: 'a'", kKey, "}")),
                        &written)
                    .ok());
  }
  v1::ListItemsResponse page;
  ASSERT_TRUE(List(Parse<v1::ListItemsRequest>("catalog: 'shop'"), &page).ok());
  EXPECT_EQ(page.state_token(), written.state_token());
  grpc::ClientContext context;
  v1::BatchGetItemsResponse got;
  ASSERT_TRUE(
      item_stub_
          ->BatchGetItems(
              &context,
              Parse<v1::BatchGetItemsRequest>("catalog: 'shop' ids: 'a'"), &got)
          .ok());
  EXPECT_EQ(got.state_token(), written.state_token());
}

// However many writes of one catalog wait for a slow one.
TEST_F(WritesServiceTest, ThoseOfOneCatalogAreNotInTheWayOfAnothers) {
  ASSERT_TRUE(Create(Parse<v1::CreateCatalogRequest>(
                         "name: 'other' schema { key_fields { name: 'k' "
                         "dimension: 2 } }"))
                  .ok());
  ASSERT_OK(ArmFailPoint("delete_matching.before_log=wait"));
  const absl::Cleanup disarm = [] { ArmFailPoint("").IgnoreError(); };
  std::vector<std::thread> writers;
  writers.emplace_back([&] {
    v1::DeleteMatchingItemsResponse response;
    EXPECT_TRUE(DeleteMatching("filter: 'price > 2'", &response).ok());
  });
  const auto update = [&](const std::string& catalog) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    v1::UpdateCatalogResponse response;
    return catalog_stub_->UpdateCatalog(
        &context,
        Parse<v1::UpdateCatalogRequest>(
            absl::StrCat("name: '", catalog,
                         "' key_fields { name: 'k' temperature: 2 } "
                         "update_mask { paths: 'temperature' }")),
        &response);
  };
  while (WaitingAtFailPoints() == 0) std::this_thread::yield();
  writers.emplace_back([&] { EXPECT_TRUE(update("shop").ok()); });
  EXPECT_TRUE(AwaitGauge("attendant_busy_workers", "sweep", 1));
  EXPECT_TRUE(AwaitGauge("attendant_busy_workers", "write", 1));
  for (int i = 0; i < 20; ++i) {
    writers.emplace_back([&, i] {
      EXPECT_TRUE(
          UpsertText(absl::StrCat("items { id: 'w", i, "'", kKey, "}")).ok());
    });
  }
  // The update and seven upserts.
  EXPECT_TRUE(AwaitGauge("attendant_busy_workers", "write", 8));
  EXPECT_TRUE(AwaitGauge("attendant_queue_depth", "write", 13));
  const auto import = [&](const std::string& catalog) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    const auto stream = item_stub_->ImportItems(&context);
    v1::ImportItemsResponse response;
    stream->Write(Parse<v1::ImportItemsRequest>(
        absl::StrCat("catalog: '", catalog, "' items { id: 'y'", kKey, "}")));
    stream->WritesDone();
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  };
  for (int i = 0; i < 10; ++i) {
    writers.emplace_back([&] { EXPECT_TRUE(import("shop").ok()); });
  }
  EXPECT_TRUE(AwaitGauge("attendant_queue_depth", "write", 23));
  const grpc::Status imported = import("other");
  EXPECT_TRUE(imported.ok()) << imported.error_message();
  const grpc::Status updated = update("other");
  EXPECT_TRUE(updated.ok()) << updated.error_message();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(20));
  v1::BatchUpsertItemsResponse response;
  const grpc::Status status = item_stub_->BatchUpsertItems(
      &context,
      Parse<v1::BatchUpsertItemsRequest>(
          absl::StrCat("catalog: 'other' items { id: 'x'", kKey, "}")),
      &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_OK(ArmFailPoint(""));
  for (std::thread& writer : writers) writer.join();
}

TEST_F(WritesServiceTest, UpsertsMayBeConditional) {
  const std::string items =
      absl::StrCat("items { id: 'n'", kKey, "} items { id: 'a'", kKey, "} ");
  ExpectError(UpsertText(absl::StrCat(items,
                                      "conditions { absent: true } "
                                      "conditions { absent: true }")),
              grpc::StatusCode::ALREADY_EXISTS, "ITEM_EXISTS", "items[1]");
  ExpectError(UpsertText(absl::StrCat(
                  items, "conditions {} conditions { sequence: 9 }")),
              grpc::StatusCode::ABORTED, "SEQUENCE_MISMATCH", "items[1]");
  ExpectError(UpsertText(absl::StrCat(items, "conditions { absent: true }")),
              grpc::StatusCode::INVALID_ARGUMENT, "INVALID_FIELD",
              "conditions");
  EXPECT_EQ(Ids(), "abc");
  const std::string good = absl::StrCat(
      items,
      "conditions { absent: true } conditions { sequence: 1 } request_id: 'r'");
  v1::BatchUpsertItemsResponse first;
  ASSERT_TRUE(UpsertText(good, &first).ok());
  EXPECT_EQ(first.inserted_count(), 1);
  EXPECT_EQ(first.updated_count(), 1);
  v1::BatchUpsertItemsResponse repeat;
  ASSERT_TRUE(UpsertText(good, &repeat).ok());
  EXPECT_EQ(repeat.SerializeAsString(), first.SerializeAsString());
}

TEST_F(WritesServiceTest, DeletesMayBeConditional) {
  ExpectError(Delete("ids: 'a' conditions { sequence: 7 }"),
              grpc::StatusCode::ABORTED, "SEQUENCE_MISMATCH", "ids[0]");
  ExpectError(Delete("ids: 'a' conditions { absent: true }"),
              grpc::StatusCode::INVALID_ARGUMENT, "INVALID_FIELD",
              "conditions[0]");
  EXPECT_TRUE(Delete("ids: 'a' conditions { sequence: 1 }").ok());
  EXPECT_EQ(Ids(), "bc");
}

TEST_F(WritesServiceTest, AnUpdateWithoutMaskSetsWhatTheItemHas) {
  v1::BatchUpdateItemsResponse response;
  ASSERT_TRUE(Update("items { id: 'a' attributes { key: 'price' value { "
                     "double_value: 9 } } } request_id: 'r'",
                     &response)
                  .ok());
  EXPECT_EQ(response.updated_count(), 1);
  const v1::Item item = Get("a", response.state_token());
  EXPECT_EQ(item.attributes().at("price").double_value(), 9);
  EXPECT_EQ(item.attributes().at("name").string_value(), "Anna");
  EXPECT_EQ(item.keys().at("k").ByteSizeLong(),
            Get("b").keys().at("k").ByteSizeLong());
  EXPECT_EQ(item.sequence(), 2);
  // Queries see the change once.
  v1::AttendResponse answer;
  ASSERT_TRUE(Attend(Parse<v1::AttendRequest>(
                         "catalog: 'shop' filter: 'price = 9' query { vector { "
                         "floats { values: [1, 0] } } }"),
                     &answer)
                  .ok());
  ASSERT_EQ(answer.items_size(), 1);
  EXPECT_EQ(answer.items(0).logit(), 1);
}

TEST_F(WritesServiceTest, AMaskSaysWhatBecomesOfAnItem) {
  // Fields that the mask names and the update lacks are removed; fields that it
  // does not name are ignored.
  ASSERT_TRUE(Update("items { id: 'a' opaque_value: 'x' attributes { key: "
                     "'name' value { string_value: 'B' } } } update_mask { "
                     "paths: ['attributes.price', 'opaque_value'] }")
                  .ok());
  v1::Item item = Get("a");
  EXPECT_EQ(item.attributes().count("price"), 0);
  EXPECT_EQ(item.attributes().at("name").string_value(), "Anna");
  EXPECT_EQ(item.opaque_value(), "x");
  ASSERT_TRUE(
      Update("items { id: 'a' attributes { key: 'price' value { "
             "double_value: 3 } } } update_mask { paths: 'attributes' }")
          .ok());
  item = Get("a");
  EXPECT_EQ(item.attributes_size(), 1);
  EXPECT_EQ(item.attributes().at("price").double_value(), 3);
  EXPECT_EQ(item.opaque_value(), "x");
  ASSERT_TRUE(Update(absl::StrCat("items { id: 'a'", kKey,
                                  "} update_mask { paths: 'keys.k' }"))
                  .ok());
  EXPECT_EQ(Get("a").attributes_size(), 1);
  v1::AttendResponse answer;
  ASSERT_TRUE(Attend(Parse<v1::AttendRequest>(
                         "catalog: 'shop' result_count: 1 query { vector { "
                         "floats { values: [1, 0] } } }"),
                     &answer)
                  .ok());
  EXPECT_EQ(answer.items(0).id(), "a");
  EXPECT_EQ(answer.items(0).logit(), 5);
}

TEST_F(WritesServiceTest, ABadUpdateIsRefusedWhole) {
  const auto refuse = [&](const std::string& request, grpc::StatusCode code,
                          const std::string& reason, const std::string& field) {
    SCOPED_TRACE(request);
    ExpectError(Update(request), code, reason, field);
  };
  const std::string price =
      "attributes { key: 'price' value { double_value: 7 } } ";
  refuse(
      absl::StrCat("items { id: 'a' ", price, "} items { id: 'x' ", price, "}"),
      grpc::StatusCode::NOT_FOUND, "ITEM_NOT_FOUND", "items[1]");
  refuse("items { id: 'a' }", grpc::StatusCode::INVALID_ARGUMENT,
         "INVALID_FIELD", "items[0]");
  refuse("", grpc::StatusCode::INVALID_ARGUMENT, "INVALID_FIELD", "items");
  refuse("items { id: 'a' } update_mask {}", grpc::StatusCode::INVALID_ARGUMENT,
         "INVALID_FIELD", "update_mask.paths");
  for (const std::string path : {"id", "keys.x", "attributes.x", "*", ""}) {
    refuse(absl::StrCat("items { id: 'a' } update_mask { paths: ['value', '",
                        path, "'] }"),
           grpc::StatusCode::INVALID_ARGUMENT, "INVALID_FIELD",
           "update_mask.paths[1]");
  }
  // The item would be left without a key.
  refuse("items { id: 'a' } update_mask { paths: 'keys' }",
         grpc::StatusCode::INVALID_ARGUMENT, "INVALID_FIELD", "items[0].keys");
  refuse(
      "items { id: 'a' attributes { key: 'price' value { string_value: 'x' "
      "} } }",
      grpc::StatusCode::INVALID_ARGUMENT, "INVALID_FIELD",
      "items[0].attributes[price]");
  EXPECT_EQ(Get("a").attributes().at("price").double_value(), 1.5);
  EXPECT_EQ(Get("a").sequence(), 1);
}

TEST_F(WritesServiceTest, AFilterDeletesWhatItIsTrueOf) {
  v1::DeleteMatchingItemsResponse response;
  ASSERT_TRUE(
      DeleteMatching("filter: 'price > 1' dry_run: true", &response).ok());
  EXPECT_EQ(response.deleted_count(), 2);
  EXPECT_EQ(Ids(), "abc");
  ASSERT_TRUE(
      DeleteMatching("filter: 'price > 2' request_id: 'r'", &response).ok());
  EXPECT_EQ(response.deleted_count(), 1);
  EXPECT_EQ(Ids(), "ac");
  EXPECT_EQ(Get("b", response.state_token()).id(), "");
  ASSERT_TRUE(UpsertText(absl::StrCat("items { id: 'b'", kKey,
                                      "attributes { key: 'price' value { "
                                      "double_value: 3 } } }"))
                  .ok());
  // The repeated request.
  ASSERT_TRUE(
      DeleteMatching("filter: 'price > 2' request_id: 'r'", &response).ok());
  EXPECT_EQ(response.deleted_count(), 1);
  EXPECT_EQ(Ids(), "abc");
  ASSERT_TRUE(
      DeleteMatching("filter_expression { exists: 'price' }", &response).ok());
  EXPECT_EQ(response.deleted_count(), 2);
  EXPECT_EQ(Ids(), "c");
}

TEST_F(WritesServiceTest, ADeleteNeedsAGoodFilter) {
  v1::DeleteMatchingItemsResponse response;
  ExpectError(DeleteMatching("", &response), grpc::StatusCode::INVALID_ARGUMENT,
              "INVALID_FIELD", "filter");
  ExpectError(DeleteMatching("filter: 'nothing = 1'", &response),
              grpc::StatusCode::INVALID_ARGUMENT, "INVALID_FIELD", "filter");
  ExpectError(DeleteMatching("filter: 'price > 2' request_id: 'r'", &response),
              grpc::StatusCode::OK, "", "");
  ExpectError(DeleteMatching("filter: 'price > 1' request_id: 'r'", &response),
              grpc::StatusCode::INVALID_ARGUMENT, "INVALID_FIELD",
              "request_id");
  EXPECT_EQ(Ids(), "ac");
}

TEST_F(WritesServiceTest, AnImportMayKeepWhatIsThere) {
  grpc::ClientContext context;
  auto stream = item_stub_->ImportItems(&context);
  stream->Write(Parse<v1::ImportItemsRequest>(
      absl::StrCat("catalog: 'shop' if_absent: true items { id: 'a'", kKey,
                   "} items { id: 'n'", kKey, "}")));
  v1::ImportItemsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(response.stored_count(), 1);
  ASSERT_EQ(response.failures_size(), 1);
  EXPECT_EQ(response.failures(0).status().code(),
            static_cast<int>(grpc::StatusCode::ALREADY_EXISTS));
  EXPECT_EQ(Ids(), "abcn");
  EXPECT_EQ(Get("a").attributes_size(), 2);
}

class SmallMessagesTest : public WritesServiceTest {
 protected:
  SmallMessagesTest() { options_.max_message_bytes = 64 << 10; }
};

// A server with a larger message limit may have stored it.
TEST_F(SmallMessagesTest, AnItemThatFitsNoPageIsNamed) {
  std::vector<Item> large(1);
  large[0].id = ItemId("large");
  large[0].keys = {{1, 1}};
  large[0].opaque_value = std::string(64 << 10, 'x');
  ASSERT_OK(catalogs_->Get("shop").value()->Upsert(large, ""));
  auto request = Parse<v1::ListItemsRequest>("catalog: 'shop'");
  v1::ListItemsResponse response;
  ASSERT_TRUE(List(request, &response).ok());
  EXPECT_EQ(response.items_size(), 3);
  request.set_page_token(response.next_page_token());
  const grpc::Status status = List(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("item 'large': the reply"));
  // Excludes the large fields.
  request.clear_page_token();
  request.mutable_read_mask()->add_paths("attributes");
  ASSERT_TRUE(List(request, &response).ok());
  EXPECT_EQ(response.items_size(), 4);
}

// The items are stored, so the reply must not be refused for its size.
TEST_F(SmallMessagesTest, FailuresOfAnImportAlwaysFit) {
  constexpr int kBad = 1000;
  v1::ImportItemsRequest request = Parse<v1::ImportItemsRequest>(
      absl::StrCat("catalog: 'shop' items { id: 'good'", kKey, "}"));
  for (int i = 0; i < kBad; ++i) {
    v1::Item* item = request.add_items();
    item->set_id(absl::StrCat("bad", i));
    (*item->mutable_attributes())["undeclared"].set_bool_value(true);
  }
  grpc::ClientContext context;
  auto stream = item_stub_->ImportItems(&context);
  ASSERT_TRUE(stream->Write(request));
  v1::ImportItemsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(response.stored_count(), 1);
  ASSERT_EQ(response.failures_size(), kBad);
  EXPECT_EQ(response.failures(0).id(), "bad0");
  EXPECT_THAT(response.failures(0).status().message(), HasSubstr("undeclared"));
  EXPECT_EQ(response.failures(kBad - 1).id(), "");
  for (int i = 0; i < kBad; ++i) {
    EXPECT_EQ(response.failures(i).item_index(), i + 1);
    EXPECT_EQ(response.failures(i).status().code(),
              static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  }
}

// Outcomes are always reported, if not in words: one query must not cost the
// others their answers.
TEST_F(SmallMessagesTest, OutcomesOfABatchAlwaysFit) {
  constexpr int kQueries = 256;
  v1::BatchAttendRequest request;
  request.set_catalog("shop");
  for (int i = 0; i < kQueries; ++i) {
    *request.add_requests() = Parse<v1::AttendRequest>(
        "query { vector { floats { values: [1, 0, 0] } } }");
  }
  v1::BatchAttendResponse response;
  const auto call = [&] {
    grpc::ClientContext context;
    const grpc::Status status =
        attention_stub_->BatchAttend(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.results_size();
  };
  ASSERT_EQ(call(), kQueries);
  for (const v1::BatchAttendResult& result : response.results()) {
    EXPECT_EQ(result.status().code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_EQ(FieldIn(response.results(0).status()), "query.vector");
  EXPECT_EQ(response.results(kQueries - 1).status().message(), "");

  // The answers before it leave no room.
  v1::BatchUpsertItemsRequest upsert = Parse<v1::BatchUpsertItemsRequest>(
      absl::StrCat("catalog: 'shop' items { id: 'large'", kKey, "}"));
  (*upsert.mutable_items(0)->mutable_attributes())["name"].set_string_value(
      std::string(2000, 'x'));
  ASSERT_TRUE(Upsert(upsert).ok());
  constexpr int kGood = 64;
  for (int i = 0; i < kGood; ++i) {
    *request.mutable_requests(i) = Parse<v1::AttendRequest>(
        "query { vector { floats { values: [1, 1] } } } read_mask { paths: "
        "'attributes' }");
  }
  ASSERT_EQ(call(), kQueries);
  EXPECT_EQ(response.results(0).response().items_size(), 4);
  EXPECT_EQ(response.results(kGood - 1).status().code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  for (int i = kGood; i < kQueries; ++i) {
    EXPECT_EQ(response.results(i).status().code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(SmallMessagesTest, ItemsAreReadNoFurtherThanTheReplyHasRoom) {
  v1::BatchUpsertItemsRequest upsert = Parse<v1::BatchUpsertItemsRequest>(
      absl::StrCat("catalog: 'shop' items { id: 'large'", kKey, "}"));
  upsert.mutable_items(0)->set_opaque_value(std::string(60000, 'o'));
  ASSERT_TRUE(Upsert(upsert).ok());
  v1::BatchGetItemsRequest request;
  request.set_catalog("shop");
  for (int i = 0; i < 256; ++i) request.add_ids("large");
  v1::BatchGetItemsResponse response;
  {
    grpc::ClientContext context;
    ExpectError(item_stub_->BatchGetItems(&context, request, &response),
                grpc::StatusCode::RESOURCE_EXHAUSTED, "OVER_LIMIT", "");
  }
  request.mutable_read_mask()->add_paths("keys");
  grpc::ClientContext context;
  EXPECT_TRUE(item_stub_->BatchGetItems(&context, request, &response).ok());
  EXPECT_EQ(response.items_size(), 256);
  // A page ends there.
  for (const char* id : {"large1", "large2"}) {
    upsert.mutable_items(0)->set_id(id);
    ASSERT_TRUE(Upsert(upsert).ok());
  }
  v1::ListItemsRequest list = Parse<v1::ListItemsRequest>("catalog: 'shop'");
  std::string ids;
  do {
    v1::ListItemsResponse page;
    ASSERT_TRUE(List(list, &page).ok());
    for (const v1::Item& item : page.items()) ids += item.id() + " ";
    list.set_page_token(page.next_page_token());
  } while (!list.page_token().empty());
  EXPECT_EQ(ids, "a b c large large1 large2 ");
}

}  // namespace
}  // namespace attendant
