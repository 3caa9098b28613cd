#include "client/api/grpc_status.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/api/client.h"
#include "core/base/status.h"
#include "google/rpc/error_details.pb.h"

namespace attendant {
namespace {

constexpr absl::string_view kDetailsUrl =
    "type.googleapis.com/google.rpc.Status";

// gRPC's words for a request that is too large.
constexpr absl::string_view kReceivedTooLarge =
    "Received message larger than max";

// gRPC's words for an HTTP/2 server that answers a call with a plain status.
constexpr absl::string_view kHttpStatus = "Received http2 header with status: ";

absl::Status RefusedAsTooLarge(absl::string_view refusal) {
  return StatusWithReason(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat("more than the server takes in a message (attendantd "
                   "--max-message-bytes): ",
                   refusal),
      kMessageTooLarge);
}

absl::Duration DelayOf(const google::rpc::RetryInfo& retry_info) {
  return absl::Seconds(retry_info.retry_delay().seconds()) +
         absl::Nanoseconds(retry_info.retry_delay().nanos());
}

}  // namespace

absl::Status MessageTooLarge(std::int64_t bytes, std::int64_t most_bytes) {
  return RefusedAsTooLarge(
      absl::StrCat(kReceivedTooLarge, " (", bytes, " vs. ", most_bytes, ")"));
}

std::optional<std::int64_t> MostBytesOf(const absl::Status& status) {
  const absl::string_view message = status.message();
  const std::size_t last_word = message.rfind(' ');
  if (ReasonOf(status) != kMessageTooLarge ||
      last_word == absl::string_view::npos ||
      !absl::StrContains(message, kReceivedTooLarge)) {
    return std::nullopt;
  }
  absl::string_view digits = message.substr(last_word + 1);
  absl::ConsumeSuffix(&digits, ")");
  std::int64_t most_bytes = 0;
  if (!absl::SimpleAtoi(digits, &most_bytes)) return std::nullopt;
  return most_bytes;
}

absl::Status FromRpcStatus(const google::rpc::Status& status) {
  if (status.code() == 0) return absl::OkStatus();
  std::string message = status.message();
  std::string field;
  std::string reason;
  for (const google::protobuf::Any& detail : status.details()) {
    google::rpc::BadRequest bad_request;
    google::rpc::ErrorInfo error_info;
    google::rpc::RetryInfo retry_info;
    if (detail.UnpackTo(&bad_request)) {
      if (bad_request.field_violations().empty()) continue;
      field = bad_request.field_violations(0).field();
      if (!absl::StrContains(message, field)) {
        absl::StrAppend(&message, " (", field, ")");
      }
    } else if (detail.UnpackTo(&error_info)) {
      reason = error_info.reason();
    } else if (detail.UnpackTo(&retry_info)) {
      absl::StrAppend(&message, " (try again in ",
                      absl::FormatDuration(DelayOf(retry_info)), ")");
    }
  }
  absl::Status result(static_cast<absl::StatusCode>(status.code()), message);
  // Copied from statuses of the functions that own the payloads' names.
  if (!field.empty()) CopyPayloads(InvalidField(field, "", ""), result);
  if (!reason.empty()) {
    CopyPayloads(StatusWithReason(result.code(), "", reason), result);
  }
  if (!status.details().empty()) {
    result.SetPayload(kDetailsUrl, absl::Cord(status.SerializeAsString()));
  }
  return result;
}

google::rpc::Status RpcDetailsOf(const absl::Status& status) {
  google::rpc::Status details;
  const auto payload = status.GetPayload(kDetailsUrl);
  if (!payload || !details.ParseFromString(std::string(*payload))) {
    details.Clear();
  }
  return details;
}

std::optional<absl::Duration> RetryInfoDelayOf(const absl::Status& status) {
  const google::rpc::Status all = RpcDetailsOf(status);
  for (const google::protobuf::Any& detail : all.details()) {
    google::rpc::RetryInfo retry_info;
    if (detail.UnpackTo(&retry_info)) return DelayOf(retry_info);
  }
  return std::nullopt;
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
      absl::StrContains(status.error_message(), "message larger than max")) {
    return RefusedAsTooLarge(status.error_message());
  }
  // A gateway says the same with 502 to 504 of a server that is away for now,
  // and the code is then Unavailable.
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE &&
      absl::StartsWith(status.error_message(), kHttpStatus)) {
    return StatusWithReason(
        absl::StatusCode::kUnavailable,
        absl::StrCat("what answers there is not a gRPC server, or knows none: "
                     "got the HTTP status ",
                     absl::StripPrefix(status.error_message(), kHttpStatus)),
        kOtherProtocol);
  }
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) details.Clear();
  details.set_code(static_cast<int>(status.error_code()));
  details.set_message(status.error_message());
  return FromRpcStatus(details);
}

}  // namespace attendant
