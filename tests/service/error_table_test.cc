// The error table of the design, row by row, through a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/catalog/query/attend.h"
#include "service/calls/methods.h"
#include "tests/service/raw_call.h"
#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ErrorTableTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    CreateShop();
  }

  // Asks the shop with the query (1, 0) and additional fields.
  grpc::Status AttendWith(const std::string& fields) {
    return Attend(Parse<v1::AttendRequest>(absl::StrCat(
        "catalog: 'shop' query { vector { floats { values: [1, 0] } } } ",
        fields)));
  }
  grpc::Status AttendText(const std::string& request) {
    return Attend(Parse<v1::AttendRequest>(request));
  }
  grpc::Status UpsertText(const std::string& item) {
    return Upsert(Parse<v1::BatchUpsertItemsRequest>(
        absl::StrCat("catalog: 'shop' items { ", item, " }")));
  }
  grpc::Status Get(const std::string& request) {
    grpc::ClientContext context;
    v1::BatchGetItemsResponse response;
    return item_stub_->BatchGetItems(
        &context, Parse<v1::BatchGetItemsRequest>(request), &response);
  }
  grpc::Status Delete(const std::string& request) {
    grpc::ClientContext context;
    v1::BatchDeleteItemsResponse response;
    return item_stub_->BatchDeleteItems(
        &context, Parse<v1::BatchDeleteItemsRequest>(request), &response);
  }
  grpc::Status BatchAttend(const v1::BatchAttendRequest& request) {
    grpc::ClientContext context;
    v1::BatchAttendResponse response;
    return attention_stub_->BatchAttend(&context, request, &response);
  }
};

void ExpectStatus(const grpc::Status& status, grpc::StatusCode code,
                  const std::string& field) {
  EXPECT_EQ(status.error_code(), code) << status.error_message();
  const google::rpc::Status details = DetailsOf(status);
  EXPECT_EQ(details.code(), code);
  EXPECT_EQ(details.message(), status.error_message());
  EXPECT_EQ(FieldIn(details), field) << status.error_message();
  EXPECT_NE(ReasonIn(details), "");
}

// Expects INVALID_ARGUMENT that names the field, the value and the allowed
// range.
void ExpectInvalid(const grpc::Status& status, const std::string& field) {
  ExpectStatus(status, grpc::StatusCode::INVALID_ARGUMENT, field);
  EXPECT_THAT(status.error_message(), StartsWith(field));
  EXPECT_THAT(status.error_message(), HasSubstr("got "));
  EXPECT_THAT(status.error_message(), HasSubstr("want "));
}

TEST_F(ErrorTableTest, MalformedBytesAreInvalidArgument) {
  for (const Method& method : AllMethods()) {
    const std::string path =
        absl::StrCat("/", method.service, "/", method.name);
    // A length past the end; a tag of zero; a field that does not end.
    for (const std::string& bytes :
         {std::string("\x0A\x7F", 2), std::string("\x00", 1),
          std::string("\x08\xFF\xFF")}) {
      const grpc::Status status = CallWithBytes(channel_, path, bytes);
      ExpectStatus(status, grpc::StatusCode::INVALID_ARGUMENT, "");
      EXPECT_EQ(ReasonIn(DetailsOf(status)), "MALFORMED_MESSAGE") << path;
    }
  }
}

TEST_F(ErrorTableTest, BadUtf8IsInvalidArgument) {
  // Field 1: a one-byte string that cannot begin UTF-8 text.
  for (const char* method : {"/attendant.v1.CatalogService/GetCatalog",
                             "/attendant.v1.ItemService/ListItems",
                             "/attendant.v1.AttentionService/Attend"}) {
    ExpectStatus(CallWithBytes(channel_, method, "\x0A\x01\xFF"),
                 grpc::StatusCode::INVALID_ARGUMENT, "");
  }
}

TEST_F(ErrorTableTest, ItemsThatDoNotFitTheSchema) {
  const std::string id = "id: 'x' ";
  const std::string key =
      "id: 'x' keys { key: 'k' value { floats { values: [1, 2] } } } ";
  const auto key_of = [&](const std::string& values) {
    return absl::StrCat(id, "keys { key: 'k' value { floats { values: [",
                        values, "] } } }");
  };
  ExpectInvalid(UpsertText(key_of("1, 2, 3")), "items[0].keys[k]");
  ExpectInvalid(UpsertText(key_of("1")), "items[0].keys[k]");
  for (const char* bad : {"nan", "inf", "-inf"}) {
    const grpc::Status status = UpsertText(key_of(absl::StrCat("1, ", bad)));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(FieldIn(DetailsOf(status)), StartsWith("items[0].keys[k]"));
  }
  ExpectInvalid(UpsertText(id), "items[0].keys");
  ExpectInvalid(UpsertText("id: ''"), "items[0].id");
  ExpectInvalid(UpsertText(absl::StrCat(
                    key,
                    "attributes { key: 'colour' value { int64_value: 1 } "
                    "}")),
                "items[0].attributes[colour]");
  ExpectInvalid(UpsertText(absl::StrCat(
                    key,
                    "attributes { key: 'price' value { int64_value: 1 } "
                    "}")),
                "items[0].attributes[price]");
  ExpectInvalid(UpsertText(absl::StrCat(
                    key,
                    "attributes { key: 'price' value { double_value: nan "
                    "} }")),
                "items[0].attributes[price]");
  ExpectInvalid(UpsertText(absl::StrCat(key, "value { floats { values: 1 } }")),
                "items[0].value");
}

TEST_F(ErrorTableTest, QueriesOutOfRange) {
  const auto with_vector = [&](const std::string& values) {
    return AttendText(
        absl::StrCat("catalog: 'shop' query { vector { floats { values: [",
                     values, "] } } }"));
  };
  ExpectInvalid(with_vector("1"), "query.vector");
  ExpectInvalid(with_vector("1, 2, 3"), "query.vector");
  for (const char* bad : {"nan", "inf", "-inf"}) {
    const grpc::Status status = with_vector(absl::StrCat("1, ", bad));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(FieldIn(DetailsOf(status)), StartsWith("query.vector"));
  }
  ExpectInvalid(AttendWith("result_count: 0"), "result_count");
  ExpectInvalid(AttendWith("result_count: -1"), "result_count");
  ExpectInvalid(AttendWith("shortlist_count: 0"), "shortlist_count");
  ExpectInvalid(AttendWith("shortlist_count: -5"), "shortlist_count");
  ExpectInvalid(AttendWith("result_count: 3 shortlist_count: 2"),
                "shortlist_count");
  for (const char* temperature : {"0", "-1", "nan", "inf"}) {
    ExpectInvalid(AttendWith(absl::StrCat("temperature: ", temperature)),
                  "temperature");
  }
  ExpectInvalid(AttendWith("select_kind: SELECT_KIND_HARD result_count: 2"),
                "result_count");
  ExpectInvalid(AttendWith("key_field: 'sound'"), "key_field");
  ExpectInvalid(AttendWith("read_mask { paths: 'attributes.colour' }"),
                "read_mask.paths[0]");
  ExpectInvalid(AttendText("catalog: 'shop'"), "query");
  ExpectInvalid(AttendText("query { text: 'x' }"), "catalog");
  ExpectInvalid(AttendText("catalog: 'shop' query { text: 'x' }"),
                "query.text");
  ExpectInvalid(AttendText("catalog: 'shop' query { examples {} }"),
                "query.examples.examples");
  ExpectInvalid(
      AttendText("catalog: 'shop' query { examples { examples { id: '' } } }"),
      "query.examples.examples[0].id");
  ExpectInvalid(AttendText("catalog: 'shop' query { examples { examples { id: "
                           "'a' weight: inf } } }"),
                "query.examples.examples[0].weight");
}

TEST_F(ErrorTableTest, LogitThatOverflowsIsInvalidArgument) {
  const grpc::Status status = AttendText(
      "catalog: 'shop' query { vector { floats { values: [3e38, "
      "3e38] } } } temperature: 0.001");
  ExpectInvalid(status, "query");
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "LOGIT_OVERFLOW");

  grpc::ClientContext context;
  v1::ContextualizeResponse response;
  const grpc::Status of_tokens = sequence_stub_->Contextualize(
      &context,
      Parse<v1::ContextualizeRequest>(
          "sequence { vectors { vectors { floats { values: 3e30 } } } }"),
      &response);
  ExpectInvalid(of_tokens, "sequence[0]");
  EXPECT_EQ(ReasonIn(DetailsOf(of_tokens)), "LOGIT_OVERFLOW");
}

TEST_F(ErrorTableTest, PooledValueThatOverflowsIsInvalidArgument) {
  ASSERT_TRUE(Create(Parse<v1::CreateCatalogRequest>(
                         "name: 'large' schema { key_fields { name: 'k' "
                         "dimension: 1 } value_dimension: 1 }"))
                  .ok());
  ASSERT_TRUE(Upsert(Parse<v1::BatchUpsertItemsRequest>(
                         "catalog: 'large' items { id: 'x' keys { key: 'k' "
                         "value { floats { values: 1 } } } value { floats { "
                         "values: 3e38 } } }"))
                  .ok());
  // Weights equal the logits: 10.
  const std::string query =
      "catalog: 'large' query { vector { floats { values: 10 } } } "
      "activation_kind: ACTIVATION_KIND_NONE ";
  const grpc::Status status = AttendText(query);
  ExpectInvalid(status, "omit_pooled_value");
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "POOLED_VALUE_OVERFLOW");
  EXPECT_TRUE(AttendText(query + "omit_pooled_value: true").ok());
}

TEST_F(ErrorTableTest, UpdatesThatSayTooLittle) {
  const auto update = [&](const std::string& fields) {
    grpc::ClientContext context;
    v1::UpdateCatalogResponse response;
    return catalog_stub_->UpdateCatalog(
        &context,
        Parse<v1::UpdateCatalogRequest>(absl::StrCat("name: 'shop' ", fields)),
        &response);
  };
  ExpectInvalid(update(""), "key_fields");
  ExpectInvalid(update("update_mask { paths: 'temperature' }"), "key_fields");
  ExpectInvalid(update("key_fields { name: 'k' }"), "update_mask");
  ExpectInvalid(update("key_fields { name: 'k' } "
                       "update_mask { paths: 'temperature' }"),
                "key_fields[0].temperature");
}

TEST_F(ErrorTableTest, ZeroNormUnderCosine) {
  ASSERT_TRUE(Create(Parse<v1::CreateCatalogRequest>(
                         "name: 'round' schema { key_fields { name: 'k' "
                         "dimension: 2 score_kind: SCORE_KIND_COSINE } }"))
                  .ok());
  ExpectInvalid(Upsert(Parse<v1::BatchUpsertItemsRequest>(
                    "catalog: 'round' items { id: 'x' keys { key: 'k' value { "
                    "floats { values: [0, 0] } } } }")),
                "items[0].keys[k]");
  ExpectInvalid(AttendText("catalog: 'round' query { vector { floats { values: "
                           "[0, 0] } } }"),
                "query");
}

TEST_F(ErrorTableTest, SchemasOutOfRange) {
  const auto create = [&](const std::string& schema) {
    return Create(Parse<v1::CreateCatalogRequest>(
        absl::StrCat("name: 'new' schema { ", schema, " }")));
  };
  ExpectInvalid(create(""), "schema.key_fields");
  ExpectInvalid(create("key_fields { name: 'k' }"),
                "schema.key_fields[0].dimension");
  ExpectInvalid(create("key_fields { name: 'K' dimension: 2 }"),
                "schema.key_fields[0].name");
  ExpectInvalid(create("key_fields { name: 'k' dimension: 2 temperature: 0 }"),
                "schema.key_fields[0].temperature");
  ExpectInvalid(create("key_fields { name: 'k' dimension: 2 } "
                       "value_dimension: -1"),
                "schema.value_dimension");
  ExpectInvalid(create("key_fields { name: 'k' dimension: 2 } attributes { "
                       "name: 'price' }"),
                "schema.attributes[0].type");
  ExpectInvalid(
      Create(Parse<v1::CreateCatalogRequest>(
          "name: 'No' schema { key_fields { name: 'k' dimension: 2 } }")),
      "name");
}

TEST_F(ErrorTableTest, NothingOfThatName) {
  const auto code = grpc::StatusCode::NOT_FOUND;
  grpc::ClientContext get;
  v1::GetCatalogResponse got;
  ExpectStatus(catalog_stub_->GetCatalog(
                   &get, Parse<v1::GetCatalogRequest>("name: 'none'"), &got),
               code, "");
  grpc::ClientContext update;
  v1::UpdateCatalogResponse updated;
  ExpectStatus(
      catalog_stub_->UpdateCatalog(
          &update, Parse<v1::UpdateCatalogRequest>("name: 'none'"), &updated),
      code, "");
  grpc::ClientContext remove;
  v1::DeleteCatalogResponse removed;
  ExpectStatus(
      catalog_stub_->DeleteCatalog(
          &remove, Parse<v1::DeleteCatalogRequest>("name: 'none'"), &removed),
      code, "");
  ExpectStatus(AttendText("catalog: 'none' query { text: 'x' }"), code, "");
  ExpectStatus(List(Parse<v1::ListItemsRequest>("catalog: 'none'")), code, "");
  ExpectStatus(Get("catalog: 'none' ids: 'a'"), code, "");
  ExpectStatus(Delete("catalog: 'none' ids: 'a'"), code, "");
  ExpectStatus(
      Upsert(Parse<v1::BatchUpsertItemsRequest>("catalog: 'none' items {}")),
      code, "");
  const grpc::Status item = Get("catalog: 'shop' ids: 'a' ids: 'nope'");
  ExpectStatus(item, code, "");
  EXPECT_THAT(item.error_message(), HasSubstr("nope"));
  ExpectStatus(AttendText("catalog: 'shop' query { examples { examples { id: "
                          "'nope' } } }"),
               code, "");
  ExpectStatus(
      AttendText("catalog: 'shop' query { examples { examples { id: 'a' } "
                 "examples { id: 'nope' } require_all: true } }"),
      code, "");
}

TEST_F(ErrorTableTest, LongNamesComeBackAsTheirOwnError) {
  // With the name, the message would not fit into the trailing metadata.
  const grpc::Status status = AttendText(absl::StrCat(
      "catalog: '", std::string(100000, 'x'), "' query { text: 'x' }"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND)
      << status.error_message();
}

TEST_F(ErrorTableTest, CreateAgain) {
  const std::string schema = "schema { key_fields { name: 'k' dimension: 2 } }";
  const auto first =
      Parse<v1::CreateCatalogRequest>(absl::StrCat("name: 'twice' ", schema));
  v1::CreateCatalogResponse response;
  ASSERT_TRUE(Create(first, &response).ok());
  EXPECT_TRUE(response.created());
  const std::string uid = response.catalog().uid();
  ASSERT_TRUE(Create(first, &response).ok());
  EXPECT_FALSE(response.created());
  EXPECT_EQ(response.catalog().uid(), uid);
  ExpectStatus(
      Create(Parse<v1::CreateCatalogRequest>(
          "name: 'twice' schema { key_fields { name: 'k' dimension: 3 } }")),
      grpc::StatusCode::ALREADY_EXISTS, "");
}

TEST_F(ErrorTableTest, IndexThatCannotAnswerIsFailedPrecondition) {
  ExpectStatus(AttendWith("scan_mode: SCAN_MODE_INDEX allow_list { ids: 'a' }"),
               grpc::StatusCode::FAILED_PRECONDITION, "");
}

TEST_F(ErrorTableTest, EmptyBatchesAreInvalidArgument) {
  ExpectInvalid(Upsert(Parse<v1::BatchUpsertItemsRequest>("catalog: 'shop'")),
                "items");
  ExpectInvalid(Get("catalog: 'shop'"), "ids");
  ExpectInvalid(Get("catalog: 'shop' ids: ''"), "ids[0]");
  ExpectInvalid(Delete("catalog: 'shop'"), "ids");
  ExpectInvalid(Delete("catalog: 'shop' ids: 'a' ids: 'a'"), "ids[1]");
  ExpectInvalid(BatchAttend(Parse<v1::BatchAttendRequest>("catalog: 'shop'")),
                "requests");
}

TEST_F(ErrorTableTest, BeyondALimitIsResourceExhaustedWithoutRetry) {
  const auto expect = [](const std::string& field, const grpc::Status& status) {
    ExpectStatus(status, grpc::StatusCode::RESOURCE_EXHAUSTED, field);
    const google::rpc::Status details = DetailsOf(status);
    EXPECT_EQ(ReasonIn(details), "OVER_LIMIT");
    EXPECT_TRUE(Details<google::rpc::RetryInfo>(details).empty());
  };
  const std::string long_id(129, 'x');
  expect("items[0].id", UpsertText(absl::StrCat("id: '", long_id, "'")));
  expect("result_count", AttendWith("result_count: 10001"));
  expect("shortlist_count", AttendWith("shortlist_count: 100001"));
  expect("schema.key_fields[0].dimension",
         Create(Parse<v1::CreateCatalogRequest>(
             "name: 'new' schema { key_fields { name: 'k' dimension: 8193 } "
             "}")));
  v1::BatchUpsertItemsRequest opaque = Parse<v1::BatchUpsertItemsRequest>(
      "catalog: 'shop' items { id: 'a' keys { key: 'k' value { floats { "
      "values: [1, 1] } } } }");
  opaque.mutable_items(0)->set_opaque_value(std::string(65536, '\0'));
  EXPECT_TRUE(Upsert(opaque).ok());
  opaque.mutable_items(0)->mutable_opaque_value()->push_back('\0');
  expect("items[0].opaque_value", Upsert(opaque));
  v1::BatchUpsertItemsRequest upsert;
  upsert.set_catalog("shop");
  v1::BatchGetItemsRequest get;
  get.set_catalog("shop");
  v1::BatchAttendRequest batch;
  batch.set_catalog("shop");
  for (int i = 0; i < 257; ++i) {
    upsert.add_items()->set_id(absl::StrCat(i));
    get.add_ids(absl::StrCat(i));
    batch.add_requests();
  }
  expect("items", Upsert(upsert));
  expect("ids", Get(get.DebugString()));
  expect("ids", Delete(get.DebugString()));
  expect("requests", BatchAttend(batch));
  expect("request_id",
         Delete(absl::StrCat("catalog: 'shop' ids: 'a' request_id: '", long_id,
                             "'")));

  v1::AttendRequest attend = Query("shop");
  for (int i = 0; i <= kMaxIdListCount; ++i) {
    attend.mutable_deny_list()->add_ids("any");
  }
  expect("deny_list.ids", Attend(attend));
  attend.mutable_allow_list()->Swap(attend.mutable_deny_list());
  expect("allow_list.ids", Attend(attend));
  attend.clear_allow_list();
  attend.clear_deny_list();
  for (int i = 0; i <= kMaxExampleCount; ++i) {
    attend.mutable_query()->mutable_examples()->add_examples()->set_id("any");
  }
  expect("query.examples.examples", Attend(attend));
}

TEST_F(ErrorTableTest, RequestBeyondTheMessageLimitIsResourceExhausted) {
  v1::AttendRequest request;
  request.set_catalog(std::string(17 << 20, 'x'));
  EXPECT_EQ(Attend(request).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ErrorTableTest, PagesThatDoNotMix) {
  v1::ListItemsResponse page;
  ASSERT_TRUE(
      List(Parse<v1::ListItemsRequest>("catalog: 'shop' page_size: 1"), &page)
          .ok());
  const std::string token = page.next_page_token();
  ASSERT_NE(token, "");
  ExpectInvalid(List(Parse<v1::ListItemsRequest>(absl::StrCat(
                    "catalog: 'shop' read_mask { paths: 'keys' } page_token: '",
                    token, "'"))),
                "page_token");
  ASSERT_TRUE(Create(Parse<v1::CreateCatalogRequest>(
                         "name: 'other' schema { key_fields { name: 'k' "
                         "dimension: 2 } }"))
                  .ok());
  ExpectInvalid(List(Parse<v1::ListItemsRequest>(absl::StrCat(
                    "catalog: 'other' page_token: '", token, "'"))),
                "page_token");
  ExpectInvalid(
      List(Parse<v1::ListItemsRequest>("catalog: 'shop' page_token: 'x'")),
      "page_token");
  ExpectInvalid(
      List(Parse<v1::ListItemsRequest>("catalog: 'shop' page_size: -1")),
      "page_size");
  grpc::ClientContext context;
  v1::ListCatalogsResponse catalogs;
  ExpectInvalid(
      catalog_stub_->ListCatalogs(
          &context, Parse<v1::ListCatalogsRequest>("page_size: -1"), &catalogs),
      "page_size");
}

}  // namespace
}  // namespace attendant
