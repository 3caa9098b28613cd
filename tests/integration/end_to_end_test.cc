// Create, import and attend with the real server and the real client.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "client/api/importer.h"
#include "tests/integration/requests.h"
#include "tests/integration/server_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AttendOverTheWireTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(server_, ServerProcess::Start(data_.path()));
    ASSERT_OK_AND_ASSIGN(client_, server_->Connect());
  }

  ScratchDirectory data_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
};

std::vector<std::string> IdsOf(const v1::AttendResponse& answer) {
  std::vector<std::string> ids;
  for (const v1::AttendedItem& item : answer.items()) ids.push_back(item.id());
  return ids;
}

TEST_F(AttendOverTheWireTest, WeightsAreTheSoftmaxOfWhatWasImported) {
  ASSERT_OK(CreateCatalog(*client_, "plane",
                          {KeyFieldOf("key", 2, v1::SCORE_KIND_DOT)}));
  const std::unique_ptr<Importer> importer =
      client_->StartImport("plane", ImportOptions());
  ASSERT_OK(importer->Add(ItemOf("east", "key", {1, 0})));
  ASSERT_OK(importer->Add(ItemOf("north", "key", {0, 1})));
  ASSERT_OK(importer->Add(ItemOf("west", "key", {-1, 0})));
  // An item of another dimension is refused; the others are kept.
  ASSERT_OK(importer->Add(ItemOf("up", "key", {0, 0, 1})));
  ASSERT_OK(importer->Finish());
  EXPECT_EQ(importer->progress().stored_count, 3);
  const std::vector<v1::ImportFailure> failures = importer->TakeFailures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].item_index(), 3);
  EXPECT_EQ(failures[0].id(), "up");

  v1::AttendRequest request;
  request.set_catalog("plane");
  *request.mutable_query()->mutable_vector() = VectorOf({2, 1});
  request.set_temperature(0.5);
  ASSERT_OK_AND_ASSIGN(const v1::AttendResponse answer,
                       client_->Attend(request));
  EXPECT_THAT(IdsOf(answer), ElementsAre("east", "north", "west"));
  // Logits 4, 2, -4 are exact in binary32.
  const double partition = std::exp(4) + std::exp(2) + std::exp(-4);
  EXPECT_EQ(answer.items(0).logit(), 4);
  EXPECT_NEAR(answer.items(0).weight(), std::exp(4) / partition, 1e-6);
  EXPECT_NEAR(answer.items(1).weight(), std::exp(2) / partition, 1e-6);
  EXPECT_NEAR(answer.items(2).weight(), std::exp(-4) / partition, 1e-6);
  EXPECT_NEAR(answer.log_partition(), std::log(partition), 1e-6);
  EXPECT_EQ(answer.returned_mass().method(), v1::MASS_METHOD_EXACT);
  EXPECT_NEAR(answer.returned_mass().value(), 1, 1e-6);
  // No item has a value, so the keys are pooled.
  EXPECT_EQ(answer.pooled_value().key_as_value_count(), 3);
  EXPECT_NEAR(answer.pooled_value().values(0),
              (std::exp(4) - std::exp(-4)) / partition, 1e-6);
  EXPECT_NEAR(answer.pooled_value().values(1), std::exp(2) / partition, 1e-6);
}

TEST_F(AttendOverTheWireTest, HardIsTheBestItemWithWeightExactlyOne) {
  ASSERT_OK(CreateCatalog(*client_, "plane",
                          {KeyFieldOf("key", 2, v1::SCORE_KIND_DOT)}));
  ASSERT_OK(client_->BatchUpsertItems(UpsertOf(
      "plane", {ItemOf("a", "key", {1, 0}), ItemOf("b", "key", {2, 0})})));
  v1::AttendRequest request;
  request.set_catalog("plane");
  request.set_select_kind(v1::SELECT_KIND_HARD);
  *request.mutable_query()->mutable_vector() = VectorOf({1, 0});
  ASSERT_OK_AND_ASSIGN(const v1::AttendResponse answer,
                       client_->Attend(request));
  EXPECT_THAT(IdsOf(answer), ElementsAre("b"));
  EXPECT_EQ(answer.items(0).weight(), 1);
}

TEST_F(AttendOverTheWireTest, ErrorsCarryTheirCodeAndNameTheField) {
  ASSERT_OK(CreateCatalog(*client_, "plane",
                          {KeyFieldOf("key", 2, v1::SCORE_KIND_DOT)}));
  v1::AttendRequest request;
  request.set_catalog("plane");
  *request.mutable_query()->mutable_vector() = VectorOf({1, 0, 0});
  EXPECT_THAT(
      client_->Attend(request),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("query.vector")));
  request.set_catalog("sphere");
  EXPECT_THAT(client_->Attend(request),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("sphere")));
}

}  // namespace
}  // namespace attendant
