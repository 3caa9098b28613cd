#include "client/load/send/verify.h"

#include <gmock/gmock.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "attendant/v1/attention_service.grpc.pb.h"
#include "core/base/clock.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

v1::AttendResponse Answer(
    const std::vector<std::pair<std::string, float>>& items) {
  v1::AttendResponse answer;
  for (const auto& [id, logit] : items) {
    v1::AttendedItem* item = answer.add_items();
    item->set_id(id);
    item->set_logit(logit);
    item->set_weight(logit / 8);
  }
  return answer;
}

TEST(VerifyTest, RecallIsTheShareOfTheExactItemsFound) {
  const auto exact = Answer({{"a", 3}, {"b", 2}, {"c", 1}, {"d", 0}});
  EXPECT_DOUBLE_EQ(Recall(exact, exact), 1);
  EXPECT_DOUBLE_EQ(Recall(Answer({{"a", 3}, {"x", 2}}), exact), 0.25);
  EXPECT_DOUBLE_EQ(Recall(Answer({}), Answer({})), 1);
}

TEST(VerifyTest, NumbersOfSharedItemsAreCompared) {
  const auto exact = Answer({{"a", 3}, {"b", 2}});
  EXPECT_EQ(MaxLogitDifference(Answer({{"a", 3}, {"x", 9}}), exact), 0);
  EXPECT_EQ(MaxLogitDifference(Answer({{"b", 2.5}, {"a", 3}}), exact), 0.5);
  EXPECT_EQ(MaxWeightDifference(Answer({{"b", 4}, {"a", 3}}), exact), 0.25);
}

TEST(VerifyTest, ResultsAddUp) {
  const auto exact = Answer({{"a", 3}, {"b", 2}});
  VerifyResult result;
  result.Add(exact, exact);
  result.Add(Answer({{"b", 2.5}}), exact);
  EXPECT_EQ(result.query_count, 2);
  EXPECT_DOUBLE_EQ(result.mean_recall, 0.75);
  EXPECT_DOUBLE_EQ(result.min_recall, 0.5);
  EXPECT_EQ(result.max_logit_difference, 0.5);
}

// Answers with one item. Answers exact queries only a limited number of times.
class FakeAttention final : public v1::AttentionService::Service {
 public:
  explicit FakeAttention(int exact_count) : exact_left_(exact_count) {}

  grpc::Status Attend(grpc::ServerContext* /*context*/,
                      const v1::AttendRequest* request,
                      v1::AttendResponse* response) override {
    ++call_count_;
    if (request->scan_mode() == v1::SCAN_MODE_EXACT && --exact_left_ < 0) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "not exactly"};
    }
    *response = Answer({{"a", 1}});
    return grpc::Status::OK;
  }
  int call_count() const { return call_count_; }

 private:
  std::atomic<int> exact_left_;
  std::atomic<int> call_count_ = 0;
};

// A server with one FakeAttention, and a client.
class AnswerCheckerTest : public ::testing::Test {
 protected:
  void Start(int exact_count) {
    attention_ = std::make_unique<FakeAttention>(exact_count);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(attention_.get());
    server_ = builder.BuildAndStart();
    Client::Options options;
    options.server = absl::StrCat("127.0.0.1:", port);
    ASSERT_OK_AND_ASSIGN(client_, Client::Connect(options));
  }

  template <typename Message>
  static grpc::ByteBuffer Bytes(const Message& message) {
    grpc::ByteBuffer bytes;
    bool own = false;
    const grpc::Status status =
        grpc::GenericSerialize<grpc::ProtoBufferWriter, Message>(message,
                                                                 &bytes, &own);
    EXPECT_TRUE(status.ok());
    return bytes;
  }

  std::unique_ptr<FakeAttention> attention_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(AnswerCheckerTest, ChecksThatFailUnderLoadAreCountedAndOthersGoOn) {
  Start(/*exact_count=*/1);
  AnswerChecker checker(client_.get(), 3, absl::ZeroDuration());
  for (int calls = 1; calls <= 3; ++calls) {
    const SteadyTime end = SteadyAfter(absl::Minutes(1));
    while (attention_->call_count() < calls && SteadyNow() < end) {
      checker.Offer(Bytes(v1::AttendRequest()), Bytes(Answer({{"a", 1}})));
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  // All checks were made under load, so none is added.
  const VerifyResult result = checker.Finish(
      [] { return std::optional<v1::AttendRequest>(std::in_place); });
  EXPECT_EQ(result.query_count, 1);
  EXPECT_EQ(result.under_load_count, 1);
  EXPECT_EQ(result.mean_recall, 1);
  EXPECT_EQ(result.failed_count, 2);
  EXPECT_THAT(result.first_failure, StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("not exactly")));
}

TEST_F(AnswerCheckerTest, ChecksAreMadeUpForUntilOneFails) {
  Start(/*exact_count=*/2);
  AnswerChecker checker(client_.get(), 5, absl::Hours(1));
  const VerifyResult result = checker.Finish(
      [] { return std::optional<v1::AttendRequest>(std::in_place); });
  EXPECT_EQ(result.query_count, 2);
  EXPECT_EQ(result.under_load_count, 0);
  EXPECT_EQ(result.failed_count, 1);
}

TEST_F(AnswerCheckerTest, ChecksAreMadeUpForUntilTheLoadIsStopped) {
  Start(/*exact_count=*/5);
  AnswerChecker checker(client_.get(), 5, absl::Hours(1));
  int left = 3;
  const VerifyResult result =
      checker.Finish([&]() -> std::optional<v1::AttendRequest> {
        if (left-- == 0) return std::nullopt;
        return v1::AttendRequest();
      });
  EXPECT_EQ(result.query_count, 3);
  EXPECT_EQ(result.failed_count, 0);
}

}  // namespace
}  // namespace attendant
