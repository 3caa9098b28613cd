// Limits that an operator sets, tested through a server, and limits of
// connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "attendant/v1/snapshot_service.grpc.pb.h"
#include "core/base/interrupt.h"
#include "core/base/long_work.h"
#include "service/calls/request_limits.h"
#include "service/connections/transport_limits.h"
#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

class LimitsTest : public ServerFixture {
 protected:
  void SetUp() override {
    options_.limits = {.dimension = 4,
                       .batch = 3,
                       .id_bytes = 5,
                       .attribute_bytes = 10,
                       .filter_bytes = 20,
                       .filter_depth = 2,
                       .result_count = 20,
                       .shortlist_count = 150,
                       .example_count = 2,
                       .id_list_count = 3,
                       .opaque_value_bytes = 6,
                       .catalog_count = 2};
    options_.transport.metadata_bytes = kMinMetadataBytes;
    ServerFixture::SetUp();
    CreateShop();
  }

  static void ExpectOverLimit(const grpc::Status& status,
                              const std::string& text) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(), HasSubstr(text));
  }
  grpc::Status UpsertText(const std::string& items) {
    return Upsert(Parse<v1::BatchUpsertItemsRequest>(
        absl::StrCat("catalog: 'shop' ", items)));
  }
  static std::string ItemText(const std::string& id, const std::string& name) {
    return absl::StrCat(
        "items { id: '", id,
        "' keys { key: 'k' value { floats { values: [1, 1] } } } attributes { "
        "key: 'name' value { string_value: '",
        name, "' } } } ");
  }
};

// gRPC ends the connection, with all its calls.
TEST_F(LimitsTest, MetadataOverTheLimitEndTheConnection) {
  grpc::ClientContext stream_context;
  const auto stream = item_stub_->ImportItems(&stream_context);
  v1::ImportItemsRequest request;
  request.set_catalog("shop");
  v1::ImportItemsResponse response;
  ASSERT_TRUE(stream->Write(request) && stream->Read(&response));
  grpc::ClientContext context;
  context.AddMetadata("x", std::string(2 * kMinMetadataBytes, 'x'));
  v1::ListCatalogsResponse list;
  const grpc::Status status =
      catalog_stub_->ListCatalogs(&context, v1::ListCatalogsRequest(), &list);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << status.error_message();
  const bool goes_on = stream->Write(request) && stream->Read(&response);
  EXPECT_FALSE(goes_on);
  if (goes_on) stream->WritesDone();
  const grpc::Status end = stream->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << end.error_message();
}

TEST_F(LimitsTest, EachIsNamed) {
  ExpectOverLimit(
      Create(Parse<v1::CreateCatalogRequest>(
          "name: 'wide' schema { key_fields { name: 'k' dimension: 5 } }")),
      "schema.key_fields[0].dimension: got 5, want 1 to 4");
  const std::string item = ItemText("x", "short");
  EXPECT_TRUE(UpsertText(item + ItemText("12345", "0123456789")).ok());
  ExpectOverLimit(UpsertText(item + item + item + item),
                  "items: got 4, want 1 to 3");
  ExpectOverLimit(UpsertText(item + ItemText("123456", "short")),
                  "items[1].id: got 6 bytes, want 1 to 5 bytes");
  ExpectOverLimit(UpsertText(ItemText("x", "01234567890")),
                  "items[0].attributes: got 11 bytes of text, want 0 to 10");
  // Each string in a list takes two bytes in addition to its own.
  ExpectOverLimit(
      UpsertText("items { id: 'x' keys { key: 'k' value { floats { values: [1, "
                 "1] } } } attributes { key: 'name' value { string_list_value "
                 "{ values: ['1234', '', '1'] } } } }"),
      "items[0].attributes: got 11 bytes of text, want 0 to 10");
  // Too few is reported with the same range.
  EXPECT_THAT(UpsertText("").error_message(),
              HasSubstr("items: got 0, want 1 to 3"));
  const std::string query =
      "catalog: 'shop' query { vector { floats { values: [1, 0] } } } ";
  EXPECT_TRUE(
      Attend(Parse<v1::AttendRequest>(query + "filter: 'price > 1'")).ok());
  ExpectOverLimit(Attend(Parse<v1::AttendRequest>(
                      query + "filter: 'price > 1 AND price < 2'")),
                  "filter: got 23 bytes, want 1 to 20");
  EXPECT_TRUE(
      Attend(Parse<v1::AttendRequest>(query + "filter: 'NOT price>1'")).ok());
  ExpectOverLimit(
      Attend(Parse<v1::AttendRequest>(query + "filter: 'NOT (NOT price>1)'")),
      "filter: got 3 deep, want 1 to 2 deep");
  const std::string deep =
      "filter_expression { negation { negation { exists: 'price' } } }";
  ExpectOverLimit(Attend(Parse<v1::AttendRequest>(query + deep)),
                  "filter_expression: got 3 deep, want 1 to 2 deep");
  v1::DeleteMatchingItemsResponse deleted;
  grpc::ClientContext context;
  ExpectOverLimit(
      item_stub_->DeleteMatchingItems(
          &context,
          Parse<v1::DeleteMatchingItemsRequest>("catalog: 'shop' " + deep),
          &deleted),
      "filter_expression: got 3 deep, want 1 to 2 deep");
}

TEST_F(LimitsTest, CandidatesAreMaskedWithinThem) {
  const auto rank = [&](const std::string& masks) {
    v1::RankCandidatesResponse response;
    grpc::ClientContext context;
    return sequence_stub_->RankCandidates(
        &context,
        Parse<v1::RankCandidatesRequest>(absl::StrCat(
            "catalog: 'shop' candidates { query { vector { floats { values: "
            "[1, 0] } } ",
            masks, " } } profile { item_id: 'a' }")),
        &response);
  };
  EXPECT_TRUE(rank("filter: 'price > 1'").ok());
  ExpectOverLimit(rank("filter: 'price > 1 AND price < 2'"),
                  "candidates.query.filter: got 23 bytes, want 1 to 20");
  ExpectOverLimit(rank("filter: 'NOT (NOT price>1)'"),
                  "candidates.query.filter: got 3 deep, want 1 to 2 deep");
  EXPECT_TRUE(rank("deny_list { ids: ['a', 'b', 'c'] }").ok());
  ExpectOverLimit(rank("deny_list { ids: ['a', 'b', 'c', 'd'] }"),
                  "candidates.query.deny_list.ids: got 4, want 0 to 3");
}

// The limits apply to the updated item, however little an update changes.
TEST_F(LimitsTest, UpdatesCantGoPastThem) {
  ASSERT_TRUE(Create(Parse<v1::CreateCatalogRequest>(
                         "name: 'texts' schema { key_fields { name: 'k' "
                         "dimension: 2 } attributes { name: 'a' type: "
                         "ATTRIBUTE_TYPE_STRING } attributes { name: 'b' type: "
                         "ATTRIBUTE_TYPE_STRING } }"))
                  .ok());
  ASSERT_TRUE(Upsert(Parse<v1::BatchUpsertItemsRequest>(
                         "catalog: 'texts' items { id: 'x' keys { key: 'k' "
                         "value { floats { values: [1, 1] } } } attributes { "
                         "key: 'a' value { string_value: '012345' } } }"))
                  .ok());
  const auto update = [&](const std::string& part) {
    grpc::ClientContext context;
    v1::BatchUpdateItemsResponse response;
    return item_stub_->BatchUpdateItems(
        &context,
        Parse<v1::BatchUpdateItemsRequest>("catalog: 'texts' items { id: 'x' " +
                                           part + " }"),
        &response);
  };
  const auto b = [](const std::string& text) {
    return "attributes { key: 'b' value { string_value: '" + text + "' } }";
  };
  EXPECT_TRUE(update(b("0123")).ok());
  ExpectOverLimit(update(b("01234")),
                  "items[0].attributes: got 11 bytes of text, want 0 to 10");
  EXPECT_TRUE(
      update("keys { key: 'k' value { floats { values: [1, 2] } } }").ok());
}

// Only the query beyond a limit is refused.
TEST_F(LimitsTest, BatchesAndTheirQueriesToo) {
  grpc::ClientContext context;
  v1::BatchAttendResponse response;
  const std::string query = "query { vector { floats { values: [1, 0] } } } ";
  auto request = Parse<v1::BatchAttendRequest>(
      absl::StrCat("catalog: 'shop' requests { ", query, "} requests { ", query,
                   "filter: 'price > 1 AND price < 2' } requests { ", query,
                   "result_count: 21 }"));
  ASSERT_TRUE(attention_stub_->BatchAttend(&context, request, &response).ok());
  ASSERT_EQ(response.results_size(), 3);
  EXPECT_EQ(response.results(0).response().items_size(), 3);
  EXPECT_EQ(response.results(1).status().code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(response.results(1).status().message(),
            "filter: got 23 bytes, want 1 to 20 bytes");
  EXPECT_EQ(response.results(2).status().code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(response.results(2).status().message(),
            "result_count: got 21, want 1 to 20");
  grpc::ClientContext second;
  request.clear_requests();
  for (int i = 0; i < 4; ++i) request.add_requests();
  ExpectOverLimit(attention_stub_->BatchAttend(&second, request, &response),
                  "requests: got 4, want 1 to 3");
}

TEST_F(LimitsTest, CountsOfAQueryAndTheirDefaults) {
  const auto attend = [&](const std::string& parts) {
    return Attend(Parse<v1::AttendRequest>(absl::StrCat(
        "catalog: 'shop' query { vector { floats { values: [1, 0] } } } ",
        parts)));
  };
  // The defaults, 10 results of a shortlist of 100, are within the limits.
  EXPECT_TRUE(attend("").ok());
  ExpectOverLimit(attend("result_count: 21"),
                  "result_count: got 21, want 1 to 20");
  EXPECT_TRUE(attend("result_count: 20 shortlist_count: 150").ok());
  ExpectOverLimit(attend("shortlist_count: 151"),
                  "shortlist_count: got 151, want 1 to 150");
  EXPECT_TRUE(attend("select_kind: SELECT_KIND_HARD").ok());
  // A default counts like an explicit number: nothing is truncated silently.
  EXPECT_TRUE(attend("min_mass: 0.5 result_count: 20").ok());
  ExpectOverLimit(attend("min_mass: 0.5"),
                  "result_count: got 1000, want 1 to 20");
  EXPECT_TRUE(attend("result_count: 15").ok());
  ExpectOverLimit(attend("result_count: 16"),
                  "shortlist_count: got 160, want 1 to 150");
  // Too few is reported by core.
  EXPECT_EQ(attend("result_count: 0").error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);

  EXPECT_TRUE(attend("allow_list { ids: ['a', 'b', 'c'] }").ok());
  ExpectOverLimit(attend("allow_list { ids: ['a', 'b', 'c', 'd'] }"),
                  "allow_list.ids: got 4, want 0 to 3");
  EXPECT_TRUE(attend("deny_list { ids: ['a', 'b', 'c'] }").ok());
  ExpectOverLimit(attend("deny_list { ids: ['a', 'b', 'c', 'd'] }"),
                  "deny_list.ids: got 4, want 0 to 3");
}

TEST_F(LimitsTest, ExamplesOfAQueryAndOfEachHead) {
  const auto examples = [](const std::string& ids) {
    std::string text = "query { examples { ";
    for (const char id : ids) {
      absl::StrAppend(&text, "examples { id: '", std::string(1, id), "' } ");
    }
    return text + "} } ";
  };
  const std::string shop = "catalog: 'shop' ";
  EXPECT_TRUE(Attend(Parse<v1::AttendRequest>(shop + examples("ab"))).ok());
  ExpectOverLimit(Attend(Parse<v1::AttendRequest>(shop + examples("abc"))),
                  "query.examples.examples: got 3, want 1 to 2");
  ExpectOverLimit(Attend(Parse<v1::AttendRequest>(
                      shop + "heads { key_field: 'k' " + examples("ab") +
                      "} heads { key_field: 'k' " + examples("abc") + "}")),
                  "heads[1].query.examples.examples: got 3, want 1 to 2");
}

TEST_F(LimitsTest, OpaqueValues) {
  const auto opaque = [](const std::string& value) {
    return absl::StrCat(
        "items { id: 'x' keys { key: 'k' value { floats { values: [1, 1] } } } "
        "opaque_value: '",
        value, "' }");
  };
  EXPECT_TRUE(UpsertText(opaque("123456")).ok());
  ExpectOverLimit(UpsertText(opaque("1234567")),
                  "items[0].opaque_value: got 7 bytes, want 0 to 6 bytes");
  grpc::ClientContext context;
  v1::BatchUpdateItemsResponse response;
  ExpectOverLimit(
      item_stub_->BatchUpdateItems(
          &context,
          Parse<v1::BatchUpdateItemsRequest>(
              "catalog: 'shop' items { id: 'a' opaque_value: '1234567' }"),
          &response),
      "items[0].opaque_value: got 7 bytes, want 0 to 6 bytes");
}

TEST_F(LimitsTest, CatalogsMadeAndRestored) {
  const auto create = [&](const std::string& name, int dimension = 2) {
    return Create(Parse<v1::CreateCatalogRequest>(
        absl::StrCat("name: '", name, "' schema { key_fields { name: 'k' ",
                     "dimension: ", dimension, " } }")));
  };
  const std::string over = "there are 2 catalogs, the most allowed";
  ASSERT_TRUE(create("second").ok());
  ExpectOverLimit(create("third"), over);
  // An existing catalog takes no new place: it is returned, or refused for
  // another reason.
  EXPECT_TRUE(create("second").ok());
  EXPECT_EQ(create("shop", 3).error_code(), grpc::StatusCode::ALREADY_EXISTS);

  LongWork work((Interrupt()));
  ASSERT_OK(catalogs_->CreateSnapshot("second", "s", work));
  const auto snapshots = v1::SnapshotService::NewStub(channel_);
  const auto restore = [&] {
    grpc::ClientContext context;
    const auto reader = snapshots->RestoreSnapshot(
        &context, Parse<v1::RestoreSnapshotRequest>(
                      "catalog: 'second' name: 's' new_catalog: 'third'"));
    v1::RestoreSnapshotResponse response;
    while (reader->Read(&response)) continue;
    return reader->Finish();
  };
  ExpectOverLimit(restore(), over);
  ASSERT_OK(catalogs_->Delete("shop"));
  EXPECT_TRUE(restore().ok());
  ExpectOverLimit(create("fourth"), over);
}

// An existing catalog is returned unchanged: limits and encoders apply only to
// new ones.
TEST_F(LimitsTest, ACatalogMadeAgainIsNotMeasuredAgain) {
  options_.limits.dimension = 1;
  server_.reset();
  ASSERT_OK_AND_ASSIGN(server_, Server::Start(options_, catalogs_.get()));
  catalog_stub_ = v1::CatalogService::NewStub(NewChannel());
  auto request = Parse<v1::CreateCatalogRequest>(
      "name: 'shop' schema { key_fields { name: 'k' dimension: 2 } attributes "
      "{ name: 'price' type: ATTRIBUTE_TYPE_DOUBLE } attributes { name: 'name' "
      "type: ATTRIBUTE_TYPE_STRING } }");
  const auto again = [&] {
    v1::CreateCatalogResponse response;
    const grpc::Status status = Create(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_FALSE(response.created());
    return response.catalog().name();
  };
  EXPECT_EQ(again(), "shop");
  options_.limits.dimension = 2;
  server_.reset();
  ASSERT_OK_AND_ASSIGN(server_, Server::Start(options_, catalogs_.get()));
  catalog_stub_ = v1::CatalogService::NewStub(NewChannel());
  request.add_text_encoders()->set_key_field("none");
  EXPECT_EQ(again(), "shop");
  request.set_name("other");
  EXPECT_EQ(Create(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// A failed creation frees its place.
TEST_F(LimitsTest, ARefusedCatalogHasNoPlace) {
  const auto create = [&](const std::string& name, const std::string& model) {
    return Create(Parse<v1::CreateCatalogRequest>(absl::StrCat(
        "name: '", name, "' schema { key_fields { name: 'k' dimension: 2 ",
        model, " } }")));
  };
  EXPECT_EQ(create("refused", "model { name: 'none' }").error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(create("second", "").ok());
}

TEST_F(LimitsTest, MetadataOfACall) {
  const auto call = [&](int bytes) {
    grpc::ClientContext context;
    context.AddMetadata("x-padding", std::string(bytes, 'x'));
    v1::GetCatalogRequest request;
    request.set_name("shop");
    v1::GetCatalogResponse response;
    return catalog_stub_->GetCatalog(&context, request, &response);
  };
  EXPECT_TRUE(call(100).ok());
  EXPECT_EQ(call(kMinMetadataBytes).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(LimitsTest, AnImportRefusesTheItemAlone) {
  grpc::ClientContext context;
  const auto stream = item_stub_->ImportItems(&context);
  const std::string items = ItemText("123456", "x") + ItemText("ok", "x");
  ASSERT_TRUE(stream->Write(
      Parse<v1::ImportItemsRequest>(absl::StrCat("catalog: 'shop' ", items))));
  v1::ImportItemsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(response.stored_count(), 1);
  ASSERT_EQ(response.failures_size(), 1);
  EXPECT_THAT(response.failures(0).status().message(),
              HasSubstr("id: got 6 bytes, want 1 to 5 bytes"));
}

TEST(TransportLimitsTest, NameWhatIsOutOfRange) {
  EXPECT_OK(ValidateTransportLimits(TransportLimits(), 16 << 20));
  const auto refuses = [](const TransportLimits& limits,
                          const std::string& text) {
    EXPECT_THAT(ValidateTransportLimits(limits, 16 << 20),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  refuses({.max_connection_count = 0}, "max-connections: got 0");
  refuses({.max_stream_count = 0}, "max-streams: got 0");
  refuses({.idle_seconds = 0}, "idle-seconds: got 0");
  refuses({.age_seconds = 0}, "connection-age-seconds: got 0");
  refuses({.age_grace_seconds = 0}, "connection-grace-seconds: got 0");
  refuses({.stall_seconds = -1}, "stall-seconds: got -1");
  refuses({.reply_memory_bytes = 1 << 20},
          "reply-memory: got 1048576, want 67108864 or more");
  refuses({.request_memory_bytes = 1 << 20}, "request-memory: got");
  refuses({.metadata_bytes = 1023},
          "max-metadata-bytes: got 1023, want 1024 to 8192");
  refuses({.metadata_bytes = 8193}, "max-metadata-bytes: got 8193");
}

TEST(TransportLimitsTest, ConnectionsStayWithinTheFilesThatMayBeOpen) {
  TransportLimits limits;
  limits.max_connection_count = 1;
  EXPECT_EQ(ConnectionsWithinReach(limits), 1);
  limits.max_connection_count = 2'000'000'000;
  testing::internal::CaptureStderr();
  const int reach = ConnectionsWithinReach(limits);
  const auto event =
      nlohmann::json::parse(testing::internal::GetCapturedStderr());
  EXPECT_GE(reach, 1);
  EXPECT_LT(reach, 2'000'000'000);
  EXPECT_EQ(event["max_connections"], reach);
  EXPECT_EQ(event["asked_for"], 2'000'000'000);
}

}  // namespace
}  // namespace attendant
