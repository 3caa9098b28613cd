// IEEE 754 binary16 numbers, as array files store them.
#ifndef ATTENDANT_CLIENT_FILES_HALF_H_
#define ATTENDANT_CLIENT_FILES_HALF_H_

#include <cmath>
#include <cstdint>

namespace attendant {

// Returns the number that `bits` encode: 1 sign, 5 exponent and 10 mantissa
// bits. Exact: every binary16 number is a binary32 number.
inline float FromHalf(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int mantissa = bits & 0x3ff;
  float magnitude;
  if (exponent == 0x1f) {
    magnitude = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(mantissa | 0x400), exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_HALF_H_
