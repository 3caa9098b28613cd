// Converts times and durations between the wire and Abseil.
#ifndef ATTENDANT_SERVICE_CONVERT_TIME_H_
#define ATTENDANT_SERVICE_CONVERT_TIME_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attendant {

// InvalidArgument naming "seconds" or "nanos" if the value is outside the range
// of google.protobuf.Timestamp, years 1 to 9999.
absl::StatusOr<absl::Time> TimeFromProto(
    const google::protobuf::Timestamp& wire);
void TimeToProto(absl::Time time, google::protobuf::Timestamp* wire);

// InvalidArgument naming `field` if the value is outside the range of
// google.protobuf.Duration, or seconds and nanos have different signs.
absl::StatusOr<absl::Duration> DurationFromProto(
    const google::protobuf::Duration& wire, absl::string_view field);
// duration >= 0.
void DurationToProto(absl::Duration duration, google::protobuf::Duration* wire);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_TIME_H_
