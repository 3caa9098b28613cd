#include "client/api/grpc_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/api/advice.h"
#include "client/api/client.h"
#include "core/base/status.h"
#include "google/rpc/error_details.pb.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

grpc::Status WithDetails(const google::rpc::Status& details,
                         grpc::StatusCode code, const std::string& message) {
  return grpc::Status(code, message, details.SerializeAsString());
}

TEST(GrpcStatusTest, KeepsCodeAndMessage) {
  EXPECT_OK(FromGrpcStatus(grpc::Status::OK));
  EXPECT_THAT(FromGrpcStatus({grpc::StatusCode::NOT_FOUND, "no catalog shop"}),
              StatusIs(absl::StatusCode::kNotFound, "no catalog shop"));
  EXPECT_THAT(FromGrpcStatus({grpc::StatusCode::UNAUTHENTICATED, "who?"}),
              StatusIs(absl::StatusCode::kUnauthenticated, "who?"));
}

TEST(GrpcStatusTest, DecodesFieldReasonAndDelay) {
  google::rpc::BadRequest bad_request;
  auto* violation = bad_request.add_field_violations();
  violation->set_field("query.vector.values[17]");
  violation->set_description("got nan, want a finite number");
  google::rpc::ErrorInfo error_info;
  error_info.set_reason("QUEUE_FULL");
  google::rpc::RetryInfo retry_info;
  retry_info.mutable_retry_delay()->set_nanos(250000000);
  google::rpc::Status details;
  details.add_details()->PackFrom(bad_request);
  details.add_details()->PackFrom(error_info);
  details.add_details()->PackFrom(retry_info);
  const absl::Status status = FromGrpcStatus(WithDetails(
      details, grpc::StatusCode::RESOURCE_EXHAUSTED, "too much at once"));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               "too much at once (query.vector.values[17]) "
                               "(try again in 250ms)"));
  EXPECT_EQ(FieldOf(status), "query.vector.values[17]");
  EXPECT_EQ(ReasonOf(status), "QUEUE_FULL");
  EXPECT_EQ(RpcDetailsOf(status).details_size(), 3);
  EXPECT_EQ(RpcDetailsOf(absl::NotFoundError("no file")).details_size(), 0);
  EXPECT_EQ(RetryInfoDelayOf(status), absl::Milliseconds(250));
  EXPECT_EQ(RetryInfoDelayOf(absl::UnavailableError("gone")), std::nullopt);
}

TEST(GrpcStatusTest, NamesAFieldOnce) {
  google::rpc::BadRequest bad_request;
  bad_request.add_field_violations()->set_field("temperature");
  google::rpc::Status details;
  details.add_details()->PackFrom(bad_request);
  EXPECT_THAT(
      FromGrpcStatus(WithDetails(details, grpc::StatusCode::INVALID_ARGUMENT,
                                 "temperature: got 0, want > 0")),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "temperature: got 0, want > 0"));
}

TEST(GrpcStatusTest, TellsAnHttpServerFromAGrpcServer) {
  const absl::Status not_found =
      FromGrpcStatus({grpc::StatusCode::UNIMPLEMENTED,
                      "Received http2 header with status: 404"});
  EXPECT_THAT(not_found, StatusIs(absl::StatusCode::kUnavailable,
                                  HasSubstr("got the HTTP status 404")));
  EXPECT_EQ(ReasonOf(not_found), kOtherProtocol);
  EXPECT_TRUE(IsUnreachable(not_found));
  EXPECT_THAT(AdviceOn(not_found), HasSubstr("--server"));
  // A gateway answers like this while its server is unavailable.
  EXPECT_EQ(
      ReasonOf(FromGrpcStatus({grpc::StatusCode::UNAVAILABLE,
                               "Received http2 header with status: 502"})),
      std::nullopt);
}

TEST(GrpcStatusTest, LeavesOutDetailsThatCantBeRead) {
  EXPECT_THAT(FromGrpcStatus({grpc::StatusCode::INTERNAL, "oh", "\xff\xff"}),
              StatusIs(absl::StatusCode::kInternal, "oh"));
  google::rpc::Status details;
  details.add_details()->set_type_url("type.googleapis.com/no.Such");
  EXPECT_THAT(
      FromGrpcStatus(WithDetails(details, grpc::StatusCode::ABORTED, "retry")),
      StatusIs(absl::StatusCode::kAborted, "retry"));
}

}  // namespace
}  // namespace attendant
