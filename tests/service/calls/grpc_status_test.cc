#include "service/calls/grpc_status.h"

#include <gmock/gmock.h>

#include <set>
#include <sstream>
#include <string>

#include "core/base/ids.h"
#include "core/base/status.h"
#include "google/rpc/error_details.pb.h"
#include "tests/service/rpc_details.h"

namespace attendant {
namespace {

using google::rpc::BadRequest;
using google::rpc::ErrorInfo;
using google::rpc::RetryInfo;

TEST(GrpcStatusTest, QuotedBytesThatAreNotTextCanBeRead) {
  const google::rpc::Status status = ToRpcStatus(InvalidField(
      "filter", "\xe6\x97\xa5 \xe6\x97 \xff \xc3\xa9\xc3", "text"));
  EXPECT_TRUE(IsValidUtf8(status.message()));
  EXPECT_THAT(status.message(),
              ::testing::HasSubstr("\xe6\x97\xa5 ?? ? \xc3\xa9?"));
  google::rpc::Status parsed;
  EXPECT_TRUE(parsed.ParseFromString(status.SerializeAsString()));
}

// A terminal would interpret them, and one log line would become two.
TEST(GrpcStatusTest, QuotedControlCharactersAreToldByTheirBytes) {
  const absl::string_view name("n\xc3\xb6\x01\x1b[31mpe\0\n\x7f\xc2\x9b", 16);
  const google::rpc::Status details = DetailsOf(
      ToGrpcStatus(InvalidField(name, name, "a \"name\" \xe2\x82\xac")));
  const std::string told = "n\xc3\xb6\\x01\\x1b[31mpe\\x00\\x0a\\x7f\\xc2\\x9b";
  EXPECT_EQ(details.message(),
            told + ": got " + told + ", want a \"name\" \xe2\x82\xac");
  EXPECT_EQ(FieldIn(details), told);
}

TEST(GrpcStatusTest, OkHasNoDetails) {
  const grpc::Status status = ToGrpcStatus(absl::OkStatus());
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.error_details(), "");
}

TEST(GrpcStatusTest, EveryCodeAndItsNameCarryOver) {
  for (int code = 1; code <= 16; ++code) {
    const auto absl_code = static_cast<absl::StatusCode>(code);
    const grpc::Status status = ToGrpcStatus(absl::Status(absl_code, "why"));
    EXPECT_EQ(static_cast<int>(status.error_code()), code);
    EXPECT_EQ(status.error_message(), "why");
    const google::rpc::Status details = DetailsOf(status);
    EXPECT_EQ(details.code(), code);
    EXPECT_EQ(details.message(), "why");
    EXPECT_EQ(ReasonIn(details), absl::StatusCodeToString(absl_code));
    EXPECT_EQ(Details<ErrorInfo>(details)[0].domain(), "attendant");
  }
}

TEST(GrpcStatusTest, FieldBecomesBadRequestAndMetadata) {
  const google::rpc::Status details = DetailsOf(
      ToGrpcStatus(InvalidField("items[3].keys[k]", "5 components", "2")));
  EXPECT_EQ(FieldIn(details), "items[3].keys[k]");
  EXPECT_EQ(Details<BadRequest>(details)[0].field_violations(0).description(),
            "items[3].keys[k]: got 5 components, want 2");
  const auto infos = Details<ErrorInfo>(details);
  ASSERT_EQ(infos.size(), 1u);
  EXPECT_EQ(infos[0].reason(), "INVALID_FIELD");
  EXPECT_EQ(infos[0].metadata().at("field"), "items[3].keys[k]");
  EXPECT_EQ(infos[0].metadata().at("got"), "5 components");
  EXPECT_EQ(infos[0].metadata().at("want"), "2");
  EXPECT_TRUE(Details<RetryInfo>(details).empty());
}

TEST(GrpcStatusTest, ReasonWins) {
  const google::rpc::Status details = ToRpcStatus(StatusWithReason(
      absl::StatusCode::kNotFound, "no catalog", "CATALOG_NOT_FOUND"));
  EXPECT_EQ(ReasonIn(details), "CATALOG_NOT_FOUND");
  EXPECT_EQ(FieldIn(details), "");
}

TEST(GrpcStatusTest, RetryInfoOnlyWhereARetryCanHelp) {
  for (const absl::Status& passes :
       {absl::ResourceExhaustedError("the queue is full"),
        absl::UnavailableError("draining")}) {
    const auto retries = Details<RetryInfo>(ToRpcStatus(passes));
    ASSERT_EQ(retries.size(), 1u) << passes;
  }
  for (const absl::Status& stays :
       {OverLimit("items", "257", "1 to 256"), absl::InternalError("oops"),
        absl::NotFoundError("no such item")}) {
    EXPECT_TRUE(Details<RetryInfo>(ToRpcStatus(stays)).empty()) << stays;
  }
}

// A disk stays full for longer than a queue does, and clients refused together
// should not return together.
TEST(GrpcStatusTest, RetriesComeLaterWhereSomethingHasToBeMended) {
  const auto delay_ms = [](const absl::Status& status) {
    const auto delay = Details<RetryInfo>(ToRpcStatus(status))[0].retry_delay();
    return delay.seconds() * 1000 + delay.nanos() / 1000000;
  };
  std::set<std::int64_t> delays;
  for (int i = 0; i < 100; ++i) {
    for (const absl::Status& mended :
         {StatusWithReason(absl::StatusCode::kResourceExhausted, "full",
                           "DISK_FULL"),
          StatusWithReason(absl::StatusCode::kUnavailable, "denied",
                           kFilesNotAccessible)}) {
      const std::int64_t delay = delay_ms(mended);
      EXPECT_GE(delay, 2500);
      EXPECT_LE(delay, 7500);
      delays.insert(delay);
    }
    const std::int64_t soon = delay_ms(absl::UnavailableError("draining"));
    EXPECT_GE(soon, 100);
    EXPECT_LE(soon, 300);
    delays.insert(soon);
  }
  EXPECT_GT(delays.size(), 50u);
}

TEST(GrpcStatusTest, LongMessagesAreCutBetweenCharacters) {
  // Characters of 3 bytes, at every offset from the cut.
  for (int offset = 0; offset < 3; ++offset) {
    std::ostringstream stream;
    for (int i = 0; i < offset; ++i) stream << 'x';
    for (int i = 0; i < 30000; ++i) stream << "\xE2\x82\xAC";
    const std::string text = stream.str();
    const grpc::Status status = ToGrpcStatus(InvalidField(text, text, text));
    EXPECT_LE(status.error_message().size(), kMaxStatusMessageBytes);
    EXPECT_GT(status.error_message().size(), kMaxStatusMessageBytes - 4);
    EXPECT_TRUE(IsValidUtf8(status.error_message()));
    EXPECT_TRUE(IsValidUtf8(FieldIn(DetailsOf(status))));
    // A client accepts 8 KiB, including base64 and percent-encoding.
    EXPECT_LT(3 * status.error_message().size() +
                  status.error_details().size() * 4 / 3,
              8192u - 1024);
  }
}

}  // namespace
}  // namespace attendant
