// Random floats that other languages can reproduce.
#ifndef ATTENDANT_TESTS_SUPPORT_SPLIT_MIX_H_
#define ATTENDANT_TESTS_SUPPORT_SPLIT_MIX_H_

#include <cmath>
#include <cstdint>
#include <vector>

namespace attendant {

// splitmix64 (Steele, Lea, Flood 2014).
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  // Returns a number in [-scale, scale) of 24 bits; exact as a float if `scale`
  // is a power of 2.
  float NextFloat(double scale) {
    const auto bits = static_cast<double>(Next() >> 40);
    return static_cast<float>((2 * std::ldexp(bits, -24) - 1) * scale);
  }

  std::vector<float> Floats(std::int64_t count, double scale = 1) {
    std::vector<float> floats(static_cast<std::size_t>(count));
    for (float& f : floats) f = NextFloat(scale);
    return floats;
  }

 private:
  std::uint64_t state_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_SPLIT_MIX_H_
