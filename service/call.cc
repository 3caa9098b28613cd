#include "service/call.h"

#include <chrono>
#include <exception>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/log.h"

namespace attendant {
namespace {

absl::Status RunCatching(const std::function<absl::Status()>& handle) {
  try {
    return handle();
  } catch (const std::bad_alloc&) {
    return StatusWithReason(absl::StatusCode::kResourceExhausted,
                            "out of memory", "OUT_OF_MEMORY");
  } catch (const std::exception& exception) {
    return absl::InternalError(
        absl::StrCat("unexpected exception: ", exception.what()));
  }
}

bool IsOurs(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInternal ||
         status.code() == absl::StatusCode::kUnknown ||
         status.code() == absl::StatusCode::kDataLoss;
}

}  // namespace

absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) {
    return absl::InfiniteFuture();
  }
  return absl::FromChrono(deadline);
}

absl::Status QueueFull() {
  return StatusWithReason(
      absl::StatusCode::kResourceExhausted,
      "too many requests wait already: try again a little later", "QUEUE_FULL");
}

absl::Status Draining() {
  return StatusWithReason(absl::StatusCode::kUnavailable,
                          "the server is shutting down", "DRAINING");
}

absl::Status RunHandler(absl::string_view method,
                        const std::function<absl::Status()>& handle) {
  absl::Status status = RunCatching(handle);
  if (IsOurs(status)) {
    LogEvent(LogLevel::kError, "call_failed",
             {{"method", std::string(method)},
              {"code", absl::StatusCodeToString(status.code())},
              {"message", std::string(status.message())}});
  }
  return status;
}

}  // namespace attendant
