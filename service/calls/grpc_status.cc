#include "service/calls/grpc_status.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/ids.h"
#include "core/base/status.h"
#include "core/base/status_details.h"
#include "google/rpc/error_details.pb.h"
#include "service/convert/time.h"
#include "service/queue/retry_delay.h"

namespace attendant {
namespace {

constexpr std::size_t kMaxFieldBytes = 256;

bool IsControl(absl::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return absl::ascii_iscntrl(first);
  // U+0080 to U+009F
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

// Messages quote the request and may cut it. A reply that is not UTF-8 could
// not be parsed, and a terminal would obey control characters: so control
// characters are written as escaped bytes, and invalid UTF-8 becomes '?'.
std::string Readable(absl::string_view text) {
  std::string readable;
  while (!text.empty()) {
    std::size_t size = 1;
    while (size <= 4 && !IsValidUtf8(text.substr(0, size))) ++size;
    const absl::string_view character = text.substr(0, size);
    if (size > 4) {
      readable.push_back('?');
      size = 1;
    } else if (IsControl(character)) {
      for (const char byte : character) {
        absl::StrAppend(
            &readable, "\\x",
            absl::Hex(static_cast<unsigned char>(byte), absl::kZeroPad2));
      }
    } else {
      absl::StrAppend(&readable, character);
    }
    text.remove_prefix(std::min(size, text.size()));
  }
  return readable;
}

std::string Shortened(absl::string_view bytes, std::size_t max_bytes) {
  // Readable never shortens a text.
  std::string text = Readable(bytes.substr(0, max_bytes + 1));
  if (text.size() <= max_bytes) return text;
  constexpr absl::string_view kMark = "...";
  std::size_t size = max_bytes - kMark.size();
  // 10xxxxxx is a continuation byte.
  while (size > 0 && (text[size] & 0xC0) == 0x80) --size;
  text.resize(size);
  return absl::StrCat(text, kMark);
}

// True if a retry has no chance until more than a moment has passed, or until
// an operator has acted.
bool HasToBeMended(const absl::Status& status) {
  return (status.code() == absl::StatusCode::kResourceExhausted &&
          !RetryDelayOf(status)) ||
         ReasonOf(status) == kFilesNotAccessible;
}

std::string DefaultReason(const absl::Status& status, bool names_field) {
  if (names_field) return "INVALID_FIELD";
  return absl::StatusCodeToString(status.code());
}

}  // namespace

google::rpc::Status ToRpcStatus(const absl::Status& status) {
  google::rpc::Status result;
  if (status.ok()) return result;
  const std::string message =
      Shortened(status.message(), kMaxStatusMessageBytes);
  result.set_code(static_cast<int>(status.code()));
  result.set_message(message);

  const std::optional<std::string> field = FieldOf(status);
  // On an arena: a map on the heap into which an insertion failed for lack of
  // memory cannot be destroyed.
  google::protobuf::Arena arena;
  auto& info =
      *google::protobuf::Arena::CreateMessage<google::rpc::ErrorInfo>(&arena);
  const std::string reason =
      ReasonOf(status).value_or(DefaultReason(status, field.has_value()));
  info.set_reason(reason);
  info.set_domain("attendant");
  auto& metadata = *info.mutable_metadata();
  for (const auto& [name, value] : DetailsOf(status)) {
    metadata[name] = Shortened(value, kMaxFieldBytes);
  }
  if (field.has_value()) {
    metadata["field"] = Shortened(*field, kMaxFieldBytes);
    if (const auto values = GotAndWantOf(status)) {
      metadata["got"] = Shortened(values->got, kMaxFieldBytes);
      metadata["want"] = Shortened(values->want, kMaxFieldBytes);
    }
  }
  result.add_details()->PackFrom(info);

  if (field.has_value()) {
    google::rpc::BadRequest bad_request;
    auto* violation = bad_request.add_field_violations();
    violation->set_field(Shortened(*field, kMaxFieldBytes));
    violation->set_description(message);
    result.add_details()->PackFrom(bad_request);
  }
  const bool may_pass =
      status.code() == absl::StatusCode::kUnavailable ||
      (status.code() == absl::StatusCode::kResourceExhausted &&
       reason != kOverLimit);
  if (may_pass) {
    google::rpc::RetryInfo retry;
    DurationToProto(RetryDelayOf(status).value_or(Scattered(
                        HasToBeMended(status) ? kMendDelay : kRetryDelay)),
                    retry.mutable_retry_delay());
    result.add_details()->PackFrom(retry);
  }
  return result;
}

grpc::Status ToGrpcStatus(const absl::Status& status) noexcept {
  if (status.ok()) return grpc::Status();
  const auto code = static_cast<grpc::StatusCode>(status.code());
  try {
    const google::rpc::Status details = ToRpcStatus(status);
    const std::string bytes = details.SerializeAsString();
    grpc::Status result(code, details.message(), bytes);
    // gRPC copies the texts when it can no longer go back: what was just freed
    // is there for that.
    const grpc::Status copy = result;
    return result;
  } catch (const std::exception&) {
    return grpc::Status(code, "");
  }
}

void PushBack(const absl::Status& status,
              grpc::ServerContextBase& context) noexcept {
  try {
    const std::optional<absl::Duration> delay = RetryDelayOf(status);
    if (!delay && !HasToBeMended(status)) return;
    context.AddTrailingMetadata(
        "grpc-retry-pushback-ms",
        delay ? absl::StrCat(absl::ToInt64Milliseconds(*delay)) : "-1");
  } catch (const std::exception&) {
    // The client tries again when it likes; it must not wait for ever instead.
  }
}

}  // namespace attendant
