// Reads that carry a write's token.
#include "service/calls/read_after_write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/fail_point.h"
#include "service/convert/tokens.h"
#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"

namespace attendant {
namespace {

class ReadAfterWriteTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    CreateShop();
    ASSERT_OK_AND_ASSIGN(const auto catalog, catalogs_->Get("shop"));
    uid_ = catalog->snapshot()->catalog_uid;
  }

  // Calls every method that takes a token; returns the outcomes by name.
  std::vector<std::pair<std::string, grpc::Status>> ReadAll(
      const std::string& token) {
    std::vector<std::pair<std::string, grpc::Status>> outcomes;
    const auto read = [&](const std::string& name, auto stub, auto method,
                          auto request, auto response) {
      grpc::ClientContext context;
      outcomes.emplace_back(name,
                            (stub->*method)(&context, request, &response));
    };
    const std::string with_token = absl::StrCat(" state_token: '", token, "'");
    read("Attend", attention_stub_.get(), &v1::AttentionService::Stub::Attend,
         Parse<v1::AttendRequest>(absl::StrCat(kQuery, with_token)),
         v1::AttendResponse());
    read("BatchAttend", attention_stub_.get(),
         &v1::AttentionService::Stub::BatchAttend,
         Parse<v1::BatchAttendRequest>(absl::StrCat(
             "catalog: 'shop' requests {", kQuery, "}", with_token)),
         v1::BatchAttendResponse());
    read("BatchGetItems", item_stub_.get(),
         &v1::ItemService::Stub::BatchGetItems,
         Parse<v1::BatchGetItemsRequest>(
             absl::StrCat("catalog: 'shop' ids: 'a'", with_token)),
         v1::BatchGetItemsResponse());
    read("ListItems", item_stub_.get(), &v1::ItemService::Stub::ListItems,
         Parse<v1::ListItemsRequest>(
             absl::StrCat("catalog: 'shop'", with_token)),
         v1::ListItemsResponse());
    read("GetCatalog", catalog_stub_.get(),
         &v1::CatalogService::Stub::GetCatalog,
         Parse<v1::GetCatalogRequest>(absl::StrCat("name: 'shop'", with_token)),
         v1::GetCatalogResponse());
    read("RankCandidates", sequence_stub_.get(),
         &v1::SequenceService::Stub::RankCandidates,
         Parse<v1::RankCandidatesRequest>(
             absl::StrCat("catalog: 'shop' candidates { items { ids: 'a' } } "
                          "profile { item_id: 'b' }",
                          with_token)),
         v1::RankCandidatesResponse());
    read(
        "Contextualize", sequence_stub_.get(),
        &v1::SequenceService::Stub::Contextualize,
        Parse<v1::ContextualizeRequest>(absl::StrCat(
            "sequence { items { catalog: 'shop' ids: 'a'", with_token, " } }")),
        v1::ContextualizeResponse());
    return outcomes;
  }

  static constexpr const char* kQuery =
      "catalog: 'shop' query { vector { floats { values: [1, 0] } } }";
  std::string uid_;
};

TEST_F(ReadAfterWriteTest, EveryReadTakesTheTokenOfAWriteThatIsDone) {
  for (const auto& [name, status] : ReadAll(StateToken(uid_, 1))) {
    EXPECT_TRUE(status.ok()) << name << ": " << status.error_message();
  }
}

TEST_F(ReadAfterWriteTest, WhatIsNoTokenIsInvalid) {
  for (const auto& [name, status] : ReadAll("garbage")) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
    EXPECT_THAT(FieldIn(DetailsOf(status)), ::testing::EndsWith("state_token"))
        << name;
  }
}

TEST_F(ReadAfterWriteTest, TheTokenOfAnotherCatalogIsRefused) {
  for (const auto& [name, status] :
       ReadAll(StateToken("0123456789abcdef", 1))) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION)
        << name;
    EXPECT_EQ(ReasonIn(DetailsOf(status)), "OTHER_CATALOG") << name;
    EXPECT_EQ(MetadataIn(status, "got"), "the token of another catalog");
  }
}

TEST_F(ReadAfterWriteTest, ATokenOfTheCatalogBeforeOfThatNameIsRefused) {
  ASSERT_TRUE(DeleteCatalog("shop").ok());
  CreateShop();
  for (const auto& [name, status] : ReadAll(StateToken(uid_, 1))) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION)
        << name;
  }
}

TEST_F(ReadAfterWriteTest, ATokenBeyondTheLastWriteIsOutOfRange) {
  for (const auto& [name, status] : ReadAll(StateToken(uid_, 2))) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::OUT_OF_RANGE) << name;
    EXPECT_EQ(ReasonIn(DetailsOf(status)), "BEYOND_LAST_WRITE") << name;
    EXPECT_EQ(MetadataIn(status, "got"), "a token of write 2");
  }
}

TEST_F(ReadAfterWriteTest, ABatchHasOneTokenForAllItsQueries) {
  grpc::ClientContext context;
  v1::BatchAttendResponse response;
  ASSERT_TRUE(
      attention_stub_
          ->BatchAttend(&context,
                        Parse<v1::BatchAttendRequest>(absl::StrCat(
                            "catalog: 'shop' requests {", kQuery,
                            " state_token: '", StateToken(uid_, 1), "' }")),
                        &response)
          .ok());
  EXPECT_EQ(response.results(0).status().code(),
            static_cast<int>(absl::StatusCode::kInvalidArgument));
}

TEST_F(ReadAfterWriteTest, WithoutADeadlineAWriteIsWaitedForForAWhile) {
  // The sequence is assigned, but not visible before the sync.
  ASSERT_OK(ArmFailPoint("log.before_sync=wait"));
  const absl::Cleanup disarm = [] { ArmFailPoint("").IgnoreError(); };
  std::thread writer([&] {
    EXPECT_TRUE(Upsert(Parse<v1::BatchUpsertItemsRequest>(
                           "catalog: 'shop' items { id: 'n' keys { key: 'k' "
                           "value { floats { values: [1, 1] } } } }"))
                    .ok());
  });
  while (WaitingAtFailPoints() == 0) std::this_thread::yield();
  const auto with_token = Parse<v1::AttendRequest>(
      absl::StrCat(kQuery, " state_token: '", StateToken(uid_, 2), "'"));
  const SteadyTime begin = SteadyNow();
  const grpc::Status status = Attend(with_token);
  const absl::Duration waited = TimeSince(begin);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "WRITE_NOT_VISIBLE");
  EXPECT_GE(waited, kDefaultTokenWait);
  // Allows as much time again for a machine under load.
  EXPECT_LT(waited, 2 * kDefaultTokenWait);
  // A read without a token does not wait.
  EXPECT_TRUE(Attend(Parse<v1::AttendRequest>(kQuery)).ok());
  EXPECT_OK(ArmFailPoint(""));
  writer.join();
  EXPECT_TRUE(Attend(with_token).ok());
}

// Tokens of writes in progress: every answer includes the write.
TEST_F(ReadAfterWriteTest, NoAnswerIsOlderThanItsToken) {
  constexpr int kWriteCount = 200;
  std::thread writer([&] {
    for (int i = 0; i < kWriteCount; ++i) {
      ASSERT_TRUE(Upsert(Parse<v1::BatchUpsertItemsRequest>(absl::StrCat(
                             "catalog: 'shop' items { id: 'n", i,
                             "' keys { key: 'k' value { floats { values: [1, ",
                             i, "] } } } }")))
                      .ok());
    }
  });
  for (int next = 2; next <= kWriteCount + 1;) {
    v1::AttendResponse response;
    const grpc::Status status =
        Attend(Parse<v1::AttendRequest>(absl::StrCat(
                   kQuery, " state_token: '", StateToken(uid_, next), "'")),
               &response);
    if (status.error_code() == grpc::StatusCode::OUT_OF_RANGE) continue;
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_OK_AND_ASSIGN(
        const CatalogState state,
        ParseStateToken(response.state_token(), "state_token"));
    ASSERT_GE(state.sequence, next);
    next = static_cast<int>(state.sequence) + 1;
  }
  writer.join();
}

}  // namespace
}  // namespace attendant
