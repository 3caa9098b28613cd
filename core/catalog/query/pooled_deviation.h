// How far a value that scans pooled may be off.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_POOLED_DEVIATION_H_
#define ATTENDANT_CORE_CATALOG_QUERY_POOLED_DEVIATION_H_

#include <span>
#include <vector>

#include "core/attention/softmax/state.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// What a segment's scan knows of the part of a pooled value that it did not
// score from floats.
struct PooledPart {
  PooledError error;
  double log_sum_variance = 0;  // ScanStats, both together
};

// The root of the expected square norm of a pooled value's error. With w the
// mean value of a part, V the pooled value of `partition` and Z its sum,
//   Z (V' - V) = sum over rows of what exp(logit) is off x (value - V)
//              + what the values' rounding adds
//              + what the part's sum is off as a whole x (w - V),
// to the first order in the errors, which are independent. 0 without parts, NaN
// where a part's numbers are none.
double PooledDeviation(std::span<const PooledPart> parts,
                       const SoftmaxPartition& partition,
                       std::span<const float> pooled_value);

// What floats leave of any weights, where logits are within some 60 of another:
// each is off by a few 2^-24 of itself.
inline constexpr double kMinRelativeError = 0x1p-15;

// What 95 % of errors stay within, as a share of the norm and never less than
// kMinRelativeError: infinite for a value of norm 0 with a deviation, and
// where that is no number. Errors of many components have norms near to their
// deviation; those of one are normal, and the widest.
double RelativeError(double deviation, std::span<const float> pooled_value);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_POOLED_DEVIATION_H_
