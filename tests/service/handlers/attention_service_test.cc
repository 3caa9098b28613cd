// Attention over gRPC, single queries and batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

using ServerTest = ServerFixture;

TEST_F(ServerTest, AttendWeighsAndPools) {
  CreateShop();
  v1::AttendResponse answer;
  ASSERT_TRUE(
      Attend(Parse<v1::AttendRequest>(
                 "catalog: 'shop' query { vector { floats { values: [2, 0] } } "
                 "} result_count: 2 read_mask { paths: 'attributes.price' "
                 "paths: 'keys' }"),
             &answer)
          .ok());
  // Logits 2, 2, 0: a and c tie and break by id.
  const double z = 2 * std::exp(2.0) + 1;
  ASSERT_EQ(answer.items_size(), 2);
  EXPECT_EQ(answer.items(0).id(), "a");
  EXPECT_EQ(answer.items(1).id(), "c");
  for (const auto& item : answer.items()) {
    EXPECT_EQ(item.logit(), 2);
    EXPECT_EQ(item.similarity(), 2);
    EXPECT_NEAR(item.weight(), std::exp(2.0) / z, 1e-6);
    EXPECT_EQ(item.keys().at("k").floats().values_size(), 2);
    EXPECT_FALSE(item.has_value());
  }
  EXPECT_EQ(answer.items(0).attributes().at("price").double_value(), 1.5);
  EXPECT_EQ(answer.items(0).attributes_size(), 1);
  EXPECT_EQ(answer.items(1).attributes_size(), 0);
  EXPECT_NEAR(answer.log_partition(), std::log(z), 1e-6);
  EXPECT_EQ(answer.returned_mass().method(), v1::MASS_METHOD_EXACT);
  EXPECT_NEAR(answer.returned_mass().value(), 2 * std::exp(2.0) / z, 1e-6);
  ASSERT_EQ(answer.pooled_value().values_size(), 2);
  EXPECT_NEAR(answer.pooled_value().values(0), 2 * std::exp(2.0) / z, 1e-6);
  EXPECT_EQ(answer.pooled_value().key_as_value_count(), 3);
  EXPECT_EQ(answer.pooled_value().scope(), v1::WEIGHT_SCOPE_SHORTLIST);
  EXPECT_EQ(answer.stats().scored_count(), 3);
  EXPECT_EQ(answer.stats().eligible_count(), 3);
  EXPECT_EQ(answer.stats().item_count(), 3);
  EXPECT_TRUE(answer.stats().complete());
  EXPECT_TRUE(answer.stats().has_compute_duration());
  EXPECT_EQ(answer.key_field(), "k");
  EXPECT_EQ(answer.score_kind(), v1::SCORE_KIND_DOT);
}

TEST_F(ServerTest, CrowdingLimitsThinOutTheAnswer) {
  CreateShop();
  ASSERT_TRUE(
      Upsert(Parse<v1::BatchUpsertItemsRequest>(
                 "catalog: 'shop' items { id: 'c' keys { key: 'k' value { "
                 "floats { values: [1, 1] } } } attributes { key: 'name' value "
                 "{ string_value: 'Anna' } } }"))
          .ok());
  // The logits of a, c and b are 3, 2 and -1.
  const std::string query =
      "catalog: 'shop' query { vector { floats { values: [3, -1] } } } "
      "result_count: 3 ";
  v1::AttendResponse all;
  ASSERT_TRUE(Attend(Parse<v1::AttendRequest>(query), &all).ok());
  ASSERT_EQ(all.items_size(), 3);
  EXPECT_EQ(all.limit_reason(), v1::LIMIT_REASON_UNSPECIFIED);
  v1::AttendResponse answer;
  ASSERT_TRUE(
      Attend(Parse<v1::AttendRequest>(
                 query + "crowding_limits { attribute: 'name' max_count: 1 }"),
             &answer)
          .ok());
  ASSERT_EQ(answer.items_size(), 2);
  EXPECT_EQ(answer.items(0).id(), "a");
  EXPECT_EQ(answer.items(1).id(), "b");
  EXPECT_EQ(answer.items(1).weight(), all.items(2).weight());
  EXPECT_EQ(answer.limit_reason(), v1::LIMIT_REASON_CROWDING);
  const grpc::Status refused = Attend(Parse<v1::AttendRequest>(
      query + "crowding_limits { attribute: 'price' max_count: 1 }"));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("crowding_limits[0]."));
}

TEST_F(ServerTest, HardWeightIsExactlyOne) {
  CreateShop();
  v1::AttendResponse answer;
  ASSERT_TRUE(
      Attend(Parse<v1::AttendRequest>(
                 "catalog: 'shop' query { vector { floats { values: [0.1, 0.3] "
                 "} } } select_kind: SELECT_KIND_HARD temperature: 3"),
             &answer)
          .ok());
  ASSERT_EQ(answer.items_size(), 1);
  EXPECT_EQ(answer.items(0).id(), "c");
  EXPECT_EQ(answer.items(0).weight(), 1.0);
}

TEST_F(ServerTest, BatchKeepsAGoodAnswerBesideABadRequest) {
  CreateShop();
  const auto request = Parse<v1::BatchAttendRequest>(R"pb(
    catalog: "shop"
    requests { query { vector { floats { values: [ 1, 0 ] } } } }
    requests {
      query { vector { floats { values: [ 1, 0 ] } } }
      temperature: 0
    }
    requests { query { examples { examples { id: "nope" } } } }
    requests { catalog: "other" }
    requests {
      catalog: "shop"
      query { examples { examples { id: "a" } } }
    }
  )pb");
  grpc::ClientContext context;
  v1::BatchAttendResponse response;
  ASSERT_TRUE(attention_stub_->BatchAttend(&context, request, &response).ok());
  ASSERT_EQ(response.results_size(), 5);
  EXPECT_EQ(response.results(0).response().items_size(), 3);
  EXPECT_EQ(response.results(1).status().code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(response.results(1).status()), "temperature");
  EXPECT_EQ(response.results(2).status().code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(FieldIn(response.results(3).status()), "catalog");
  // The example itself is excluded.
  EXPECT_EQ(response.results(4).response().items_size(), 2);
  // The bytes match those of a query asked alone, except for the time and the
  // number of queries in the pass.
  v1::AttendRequest alone = request.requests(0);
  alone.set_catalog("shop");
  v1::AttendResponse answer;
  ASSERT_TRUE(Attend(alone, &answer).ok());
  v1::AttendResponse batched = response.results(0).response();
  answer.mutable_stats()->clear_compute_duration();
  batched.mutable_stats()->clear_compute_duration();
  EXPECT_EQ(batched.stats().shared_query_count(), 2);
  EXPECT_EQ(answer.stats().shared_query_count(), 1);
  answer.mutable_stats()->clear_shared_query_count();
  batched.mutable_stats()->clear_shared_query_count();
  EXPECT_EQ(batched.SerializeAsString(), answer.SerializeAsString());
}

// An answer too large for the message is refused alone; the answers after it
// are kept.
TEST_F(ServerTest, ABatchKeepsTheAnswersThatAMessageHasRoomFor) {
  server_.reset();
  catalogs_.reset();
  options_.max_message_bytes = 1 << 20;
  ServerFixture::SetUp();
  CreateShop();
  v1::BatchUpsertItemsRequest upsert = Parse<v1::BatchUpsertItemsRequest>(
      "catalog: 'shop' items { id: 'big' keys { key: 'k' value { floats { "
      "values: [1, 1] } } } }");
  (*upsert.mutable_items(0)->mutable_attributes())["name"].set_string_value(
      std::string(300 << 10, 'x'));
  ASSERT_TRUE(Upsert(upsert).ok());
  v1::BatchAttendRequest request;
  request.set_catalog("shop");
  for (int i = 0; i < 20; ++i) {
    *request.add_requests() = Parse<v1::AttendRequest>(
        "query { vector { floats { values: [1, 0] } } } ");
    if (i < 19)
      request.mutable_requests(i)->mutable_read_mask()->add_paths("attributes");
  }
  grpc::ClientContext context;
  v1::BatchAttendResponse response;
  const grpc::Status status =
      attention_stub_->BatchAttend(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.results_size(), 20);
  for (int i = 0; i < 20; ++i) {
    const v1::BatchAttendResult& result = response.results(i);
    if (i < 3 || i == 19) {
      EXPECT_EQ(result.response().items_size(), 4) << i;
      continue;
    }
    EXPECT_EQ(result.status().code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(ReasonIn(result.status()), "OVER_LIMIT");
    EXPECT_THAT(result.status().message(),
                HasSubstr("the batch's reply would take more than 1048576"));
  }
}

}  // namespace
}  // namespace attendant
