#include "service/convert/time.h"

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
         absl::Nanoseconds(wire.nanos());
}

void TimeToProto(absl::Time time, google::protobuf::Timestamp* wire) {
  const std::int64_t seconds = absl::ToUnixSeconds(time);
  wire->set_seconds(seconds);
  wire->set_nanos(static_cast<std::int32_t>(
      absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
}

absl::StatusOr<absl::Duration> DurationFromProto(
    const google::protobuf::Duration& wire, absl::string_view field) {
  constexpr std::int64_t kMaxSeconds = 315576000000;  // 10,000 years
  constexpr std::int32_t kMaxNanos = 999'999'999;
  if (wire.seconds() < -kMaxSeconds || wire.seconds() > kMaxSeconds) {
    return InvalidField(absl::StrCat(field, ".seconds"),
                        absl::StrCat(wire.seconds()),
                        absl::StrCat(-kMaxSeconds, " to ", kMaxSeconds));
  }
  const bool signs_differ = (wire.seconds() > 0 && wire.nanos() < 0) ||
                            (wire.seconds() < 0 && wire.nanos() > 0);
  if (wire.nanos() < -kMaxNanos || wire.nanos() > kMaxNanos || signs_differ) {
    return InvalidField(
        absl::StrCat(field, ".nanos"), absl::StrCat(wire.nanos()),
        absl::StrCat("at most ", kMaxNanos, ", with the sign of seconds"));
  }
  return absl::Seconds(wire.seconds()) + absl::Nanoseconds(wire.nanos());
}

void DurationToProto(absl::Duration duration,
                     google::protobuf::Duration* wire) {
  const std::int64_t seconds = absl::ToInt64Seconds(duration);
  wire->set_seconds(seconds);
  wire->set_nanos(static_cast<std::int32_t>(
      absl::ToInt64Nanoseconds(duration - absl::Seconds(seconds))));
}

}  // namespace attendant
