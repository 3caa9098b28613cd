// The logit of nothing, and the logarithm of a mass of zero.
#ifndef ATTENDANT_CORE_BASE_MINUS_INFINITY_H_
#define ATTENDANT_CORE_BASE_MINUS_INFINITY_H_

#include <limits>

namespace attendant {

inline constexpr double kMinusInfinity =
    -std::numeric_limits<double>::infinity();
inline constexpr float kMinusInfinityF =
    -std::numeric_limits<float>::infinity();

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_MINUS_INFINITY_H_
