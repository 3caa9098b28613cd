#ifndef ATTENDANT_CORE_BASE_NORMAL_DEVIATIONS_H_
#define ATTENDANT_CORE_BASE_NORMAL_DEVIATIONS_H_

namespace attendant {

// 95 % of a normal distribution lie within this many standard deviations of its
// mean.
inline constexpr double kNormalDeviations = 1.96;

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_NORMAL_DEVIATIONS_H_
