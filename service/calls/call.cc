#include "service/calls/call.h"

#include <chrono>
#include <exception>
#include <new>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/status.h"

namespace attendant {
namespace {

absl::Status StatusOfException(const std::exception& exception) {
  const auto* error = dynamic_cast<const std::system_error*>(&exception);
  if (error != nullptr &&
      error->code() == std::errc::resource_unavailable_try_again) {
    return StatusWithReason(absl::StatusCode::kResourceExhausted,
                            "the system allows the server no more threads",
                            "OUT_OF_THREADS");
  }
  return absl::InternalError(
      absl::StrCat("unexpected exception: ", exception.what()));
}

}  // namespace

absl::string_view MetadataOf(const grpc::ServerContextBase& context,
                             const char* key) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(key);
  if (found == metadata.end()) return {};
  return {found->second.data(), found->second.size()};
}

// context.deadline() would return wall-clock time.
SteadyTime DeadlineOf(const grpc::CallbackServerContext& context) {
  const gpr_timespec deadline = context.raw_deadline();
  const gpr_timespec left =
      gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  return SteadyAfter(absl::Seconds(left.tv_sec) +
                     absl::Nanoseconds(left.tv_nsec));
}

// The remaining time is sent with three digits, rounded up, which adds at most
// a hundredth, and counts here from the arrival of the call. The cancellation
// with which the caller ends the call travels the same way, possibly faster.
SteadyTime CallerDeadline(SteadyTime deadline, SteadyTime now) {
  constexpr auto kMaxFaster = std::chrono::milliseconds(10);
  if (deadline == SteadyTime::max()) return deadline;
  return deadline - (deadline - now) / 100 - kMaxFaster;
}

gpr_timespec ToGrpcTime(SteadyTime time) {
  if (time == SteadyTime::max()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_nanos(absl::ToInt64Nanoseconds(TimeUntil(time)),
                          GPR_TIMESPAN));
}

absl::Status RunHandler(absl::FunctionRef<absl::Status()> handle) noexcept {
  try {
    try {
      return handle();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& exception) {
      return StatusOfException(exception);
    }
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

}  // namespace attendant
