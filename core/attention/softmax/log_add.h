// Sums of numbers that are represented by their logs.
#ifndef ATTENDANT_CORE_ATTENTION_SOFTMAX_LOG_ADD_H_
#define ATTENDANT_CORE_ATTENTION_SOFTMAX_LOG_ADD_H_

#include <algorithm>
#include <cmath>

#include "core/base/minus_infinity.h"

namespace attendant {

// Returns log(exp(a) + exp(b)). Either may be -infinity, the log of 0.
inline double LogAdd(double a, double b) {
  const double greater = std::max(a, b);
  if (greater == kMinusInfinity) return greater;
  return greater + std::log1p(std::exp(std::min(a, b) - greater));
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SOFTMAX_LOG_ADD_H_
