// Moments of the wire to absl::Time and back.
#ifndef ATTENDANT_SERVICE_CONVERT_TIME_H_
#define ATTENDANT_SERVICE_CONVERT_TIME_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attendant {

// InvalidArgument naming "seconds" or "nanos" outside of what a
// google.protobuf.Timestamp may hold: the years 1 to 9999.
absl::StatusOr<absl::Time> TimeFromProto(
    const google::protobuf::Timestamp& wire);
void TimeToProto(absl::Time time, google::protobuf::Timestamp* wire);

// InvalidArgument naming `field` outside of what a google.protobuf.Duration may
// hold, or with seconds and nanos of different signs.
absl::StatusOr<absl::Duration> DurationFromProto(
    const google::protobuf::Duration& wire, absl::string_view field);
// duration >= 0.
void DurationToProto(absl::Duration duration, google::protobuf::Duration* wire);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_TIME_H_
