// Converts approximations of attention from the wire to core.
#ifndef ATTENDANT_SERVICE_CONVERT_APPROXIMATION_H_
#define ATTENDANT_SERVICE_CONVERT_APPROXIMATION_H_

#include "absl/status/statusor.h"
#include "attendant/v1/sequence_service.pb.h"
#include "core/attention/approximations/approximation.h"

namespace attendant {

// Fills in defaults; ranges that core checks are left to core. InvalidArgument,
// naming a part of `approximation`, if no kind is set or a number would be
// taken by core for a default.
absl::StatusOr<Approximation> ApproximationFromProto(
    const v1::Approximation& wire);

// Returns the method that a reply reports for `approximation`.
v1::AttentionMethod MethodToProto(const Approximation& approximation);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_APPROXIMATION_H_
