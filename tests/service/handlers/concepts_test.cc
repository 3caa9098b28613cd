// The textbook's statements about attention, with its numbers, over gRPC.
// docs/concepts.md names the other tests.
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/service/server_fixture.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class ConceptsTest : public ServerFixture {
 protected:
  void CreateCatalog(const std::string& fields) {
    v1::CreateCatalogRequest request;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("name: 'shop' schema { ", fields, " }"), &request));
    const grpc::Status status = Create(request);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }

  void Put(const std::string& id, const std::vector<float>& key,
           const std::vector<float>& value = {}) {
    v1::BatchUpsertItemsRequest request;
    request.set_catalog("shop");
    v1::Item* item = request.add_items();
    item->set_id(id);
    SetVector(key, &(*item->mutable_keys())["k"]);
    if (!value.empty()) SetVector(value, item->mutable_value());
    const grpc::Status status = Upsert(request);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }

  static v1::AttendRequest Query(const std::vector<float>& vector) {
    return ServerFixture::Query("shop", vector);
  }
};

TEST_F(ConceptsTest, ReturnedWeightsAndTheTailSumToOne) {
  CreateCatalog("key_fields { name: 'k' dimension: 2 }");
  for (int i = 0; i < 50; ++i) {
    Put(absl::StrCat("item", i),
        {static_cast<float>(std::sin(i)), static_cast<float>(std::cos(i))});
  }
  v1::AttendRequest request = Query({2, 1});
  request.set_weight_scope(v1::WEIGHT_SCOPE_CATALOG);
  const v1::AttendResponse answer = Answer(request);
  ASSERT_EQ(answer.items_size(), 10);
  double sum = 0;
  for (const v1::AttendedItem& item : answer.items()) sum += item.weight();
  EXPECT_LT(sum, 1);
  EXPECT_NEAR(sum + (1 - answer.returned_mass().value()), 1, 1e-6);
}

TEST_F(ConceptsTest, HardIsALookupAndTheLimitOfSharpness) {
  CreateCatalog("key_fields { name: 'k' dimension: 2 } value_dimension: 3");
  const std::vector<float> stored = {0.1f, 1e-30f, -3.3f};
  Put("east", {1, 0}, stored);
  Put("north", {0, 1}, {7, 8, 9});
  v1::AttendRequest request = Query({2, 1});
  request.set_select_kind(v1::SELECT_KIND_HARD);
  const v1::AttendResponse hard = Answer(request);
  ASSERT_EQ(hard.items_size(), 1);
  EXPECT_EQ(hard.items(0).id(), "east");
  EXPECT_EQ(hard.items(0).weight(), 1.0);
  request = Query({2, 1});
  request.set_temperature(1e-4);
  const v1::AttendResponse sharp = Answer(request);
  EXPECT_EQ(sharp.items(0).id(), "east");
  EXPECT_EQ(sharp.items(0).weight(), 1.0);
  for (int d = 0; d < 3; ++d) {
    // Identical bits.
    EXPECT_EQ(hard.pooled_value().values(d), stored[d]);
    EXPECT_EQ(sharp.pooled_value().values(d), stored[d]);
  }
}

TEST_F(ConceptsTest, ScaledDotOfFourOnesIsTwo) {
  CreateCatalog("key_fields { name: 'k' dimension: 4 }");
  Put("ones", {1, 1, 1, 1});
  v1::AttendRequest request = Query({1, 1, 1, 1});
  EXPECT_EQ(Answer(request).items(0).logit(), 4);
  request.set_score_kind(v1::SCORE_KIND_SCALED_DOT);
  EXPECT_EQ(Answer(request).items(0).logit(), 2);
}

TEST_F(ConceptsTest, NineTokensAttendToEachOtherAndThemselves) {
  CreateCatalog("key_fields { name: 'k' dimension: 1 } value_dimension: 1");
  for (int i = 0; i < 9; ++i) {
    Put(absl::StrCat("token", i), {0.1f * static_cast<float>(i)},
        {static_cast<float>(i)});
  }
  v1::BatchAttendRequest batch;
  batch.set_catalog("shop");
  for (int i = 0; i < 9; ++i) {
    v1::AttendRequest* request = batch.add_requests();
    v1::Examples* examples = request->mutable_query()->mutable_examples();
    examples->add_examples()->set_id(absl::StrCat("token", i));
    examples->set_exclude_examples(false);
  }
  grpc::ClientContext context;
  v1::BatchAttendResponse response;
  ASSERT_TRUE(attention_stub_->BatchAttend(&context, batch, &response).ok());
  ASSERT_EQ(response.results_size(), 9);
  for (int i = 0; i < 9; ++i) {
    const v1::AttendResponse& answer = response.results(i).response();
    ASSERT_EQ(answer.items_size(), 9);
    double sum = 0;
    for (const v1::AttendedItem& item : answer.items()) sum += item.weight();
    EXPECT_NEAR(sum, 1, 1e-9);
    // n x 1.
    ASSERT_EQ(answer.pooled_value().values_size(), 1);
    double z = 0;
    double expected = 0;
    for (int j = 0; j < 9; ++j) {
      const double e = std::exp(0.01 * i * j);
      z += e;
      expected += e * j;
    }
    EXPECT_NEAR(answer.pooled_value().values(0), expected / z, 1e-5);
  }
}

TEST_F(ConceptsTest, MaskedWeighsExactlyNothing) {
  CreateCatalog("key_fields { name: 'k' dimension: 1 }");
  for (int i = 0; i < 4; ++i) Put(absl::StrCat("item", i), {1});
  v1::AttendRequest request = Query({1});
  request.set_weight_scope(v1::WEIGHT_SCOPE_CATALOG);
  request.mutable_deny_list()->add_ids("item2");
  v1::AttendResponse answer = Answer(request);
  ASSERT_EQ(answer.items_size(), 3);
  for (const v1::AttendedItem& item : answer.items()) {
    EXPECT_NE(item.id(), "item2");
    EXPECT_NEAR(item.weight(), 1.0 / 3, 1e-9);
  }
  // A fully masked row is empty, rather than uniform as a mask of -1e9 would
  // make it.
  for (const int i : {0, 1, 3}) {
    request.mutable_deny_list()->add_ids(absl::StrCat("item", i));
  }
  answer = Answer(request);
  EXPECT_EQ(answer.items_size(), 0);
  EXPECT_EQ(answer.pooled_value().values(0), 0);
  EXPECT_EQ(answer.returned_mass().value(), 0);
  EXPECT_FALSE(answer.has_log_partition());
  EXPECT_EQ(answer.effective_item_count(), 0);
}

TEST_F(ConceptsTest, NaNNeverGetsIn) {
  CreateCatalog("key_fields { name: 'k' dimension: 1 }");
  v1::BatchUpsertItemsRequest request;
  request.set_catalog("shop");
  request.add_items()->set_id("bad");
  (*request.mutable_items(0)->mutable_keys())["k"].mutable_floats()->add_values(
      std::nanf(""));
  EXPECT_EQ(Upsert(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Attend(Query({INFINITY})).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ConceptsTest, TiesBreakById) {
  CreateCatalog("key_fields { name: 'k' dimension: 2 }");
  for (const char* id : {"c", "a", "b"}) Put(id, {1, 1});
  const v1::AttendResponse answer = Answer(Query({0.3f, 0.7f}));
  ASSERT_EQ(answer.items_size(), 3);
  EXPECT_EQ(answer.items(0).id(), "a");
  EXPECT_EQ(answer.items(1).id(), "b");
  EXPECT_EQ(answer.items(2).id(), "c");
}

}  // namespace
}  // namespace attendant
