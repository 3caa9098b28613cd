#include "service/convert_time.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {

absl::StatusOr<absl::Time> TimeFromProto(
    const google::protobuf::Timestamp& wire) {
  constexpr std::int64_t kMinSeconds = -62135596800;
  constexpr std::int64_t kMaxSeconds = 253402300799;
  if (wire.seconds() < kMinSeconds || wire.seconds() > kMaxSeconds) {
    return InvalidField("seconds", absl::StrCat(wire.seconds()),
                        absl::StrCat(kMinSeconds, " to ", kMaxSeconds));
  }
  if (wire.nanos() < 0 || wire.nanos() > 999'999'999) {
    return InvalidField("nanos", absl::StrCat(wire.nanos()), "0 to 999999999");
  }
  return absl::FromUnixSeconds(wire.seconds()) +
         absl::Microseconds(wire.nanos() / 1000);
}

void TimeToProto(absl::Time time, google::protobuf::Timestamp* wire) {
  const std::int64_t seconds = absl::ToUnixSeconds(time);
  wire->set_seconds(seconds);
  wire->set_nanos(static_cast<std::int32_t>(
      absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
}

void DurationToProto(absl::Duration duration,
                     google::protobuf::Duration* wire) {
  const std::int64_t seconds = absl::ToInt64Seconds(duration);
  wire->set_seconds(seconds);
  wire->set_nanos(static_cast<std::int32_t>(
      absl::ToInt64Nanoseconds(duration - absl::Seconds(seconds))));
}

}  // namespace attendant
