// What COSINE keeps of a key beside it. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_KEYS_INVERSE_NORM_H_
#define ATTENDANT_CORE_SHORTLIST_KEYS_INVERSE_NORM_H_

#include <cmath>
#include <limits>
#include <span>

#include "core/attention/softmax/score.h"

namespace attendant {

// 1 / |key|; 0 for a key so short that this is beyond a float, the zero key
// among them; NaN for an empty span, a row without a key.
inline float InverseNorm(std::span<const float> key) {
  if (key.empty()) return std::numeric_limits<float>::quiet_NaN();
  const auto inverse = static_cast<float>(1 / Norm(key));
  return std::isfinite(inverse) ? inverse : 0.0f;
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KEYS_INVERSE_NORM_H_
