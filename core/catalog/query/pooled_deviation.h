// The error of a value that scans pooled.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_POOLED_DEVIATION_H_
#define ATTENDANT_CORE_CATALOG_QUERY_POOLED_DEVIATION_H_

#include <span>
#include <vector>

#include "core/attention/softmax/state.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// The knowledge of a segment's scan about the part of a pooled value that was
// not scored from floats.
struct PooledPart {
  PooledError error;
  double log_sum_variance = 0;  // the sum of both ScanStats variances
};

// Returns the root of the expected square norm of a pooled value's error. With
// w the mean value of a part, V the pooled value of `partition` and Z its sum,
//   Z (V' - V) = sum over rows of the error of exp(logit) x (value - V)
//              + the error from rounding of values
//              + the error of the part's sum as a whole x (w - V),
// to first order in the errors, which are independent. 0 without parts, NaN if
// a number of a part is NaN.
double PooledDeviation(std::span<const PooledPart> parts,
                       const SoftmaxPartition& partition,
                       std::span<const float> pooled_value);

// The relative error that remains from float rounding for any weights whose
// logits are within about 60 of each other: each weight is off by a few 2^-24
// of itself.
inline constexpr double kMinRelativeError = 0x1p-15;

// Returns the error, as a share of the norm, that holds for 95 % of values; at
// least kMinRelativeError. Infinite for a value of norm 0 with a nonzero
// deviation, and if the quotient is NaN. Errors of many components have norms
// close to their deviation; those of one component are normal and the widest.
double RelativeError(double deviation, std::span<const float> pooled_value);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_POOLED_DEVIATION_H_
