#include "client/api/batches.h"

#include <algorithm>

#include "client/api/grpc_status.h"
#include "core/base/status.h"

namespace attendant {
namespace {

bool IsOfTooMany(const absl::Status& status) {
  if (ReasonOf(status) == kMessageTooLarge) return true;
  if (ReasonOf(status) != kOverLimit) return false;
  const auto field = FieldOf(status);
  // Without a field, the reply is over the limit.
  return !field.has_value() || field == "items" || field == "ids";
}

}  // namespace

absl::Status SendInBatches(
    std::int64_t count,
    absl::FunctionRef<absl::Status(std::int64_t begin, std::int64_t& end)>
        send) {
  std::int64_t size = kMaxBatchSize;
  for (std::int64_t begin = 0; begin < count;) {
    std::int64_t end = std::min(count, begin + size);
    const absl::Status status = send(begin, end);
    if (status.ok()) {
      begin = end;
    } else if (end - begin > 1 && IsOfTooMany(status)) {
      size = (end - begin) / 2;
    } else {
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace attendant
