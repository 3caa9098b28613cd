// The inverse norm that an index for COSINE keeps of each key. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_KEYS_INVERSE_NORM_H_
#define ATTENDANT_CORE_SHORTLIST_KEYS_INVERSE_NORM_H_

#include <cmath>
#include <limits>
#include <span>

#include "core/attention/softmax/score.h"

namespace attendant {

// Returns 1 / |key|; 0 for a key so short that the result exceeds a float, such
// as the zero key; NaN for an empty span, which is a row without a key.
inline float InverseNorm(std::span<const float> key) {
  if (key.empty()) return std::numeric_limits<float>::quiet_NaN();
  const auto inverse = static_cast<float>(1 / Norm(key));
  return std::isfinite(inverse) ? inverse : 0.0f;
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KEYS_INVERSE_NORM_H_
