#ifndef ATTENDANT_TESTS_SUPPORT_DOT_H_
#define ATTENDANT_TESTS_SUPPORT_DOT_H_

#include <cstddef>
#include <span>

namespace attendant {

// Dot product by a plain loop in double precision.
inline double Dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t d = 0; d < a.size(); ++d) sum += double{a[d]} * b[d];
  return sum;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_DOT_H_
