// Approximations of attention, of the wire to core's.
#ifndef ATTENDANT_SERVICE_CONVERT_APPROXIMATION_H_
#define ATTENDANT_SERVICE_CONVERT_APPROXIMATION_H_

#include "absl/status/statusor.h"
#include "attendant/v1/sequence_service.pb.h"
#include "core/attention/approximations/approximation.h"

namespace attendant {

// With defaults filled in; ranges that core checks are left to it.
// InvalidArgument, naming a part of `approximation`: no kind, or a number that
// core takes for a default.
absl::StatusOr<Approximation> ApproximationFromProto(
    const v1::Approximation& wire);

// What a reply says of it.
v1::AttentionMethod MethodToProto(const Approximation& approximation);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_APPROXIMATION_H_
