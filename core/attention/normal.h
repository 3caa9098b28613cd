// Normal random numbers that are functions of a seed and a counter. Internal.
#ifndef ATTENDANT_CORE_ATTENTION_NORMAL_H_
#define ATTENDANT_CORE_ATTENTION_NORMAL_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>

#include "core/attention/gumbel.h"

namespace attendant {

// What numbers are drawn for. Those of one seed for two uses are independent,
// and of the Gumbel noise of that seed.
enum class NormalUse : std::uint64_t {
  kHashDirections = 0x6c73682d64697273,
  kRowReduction = 0x6c696e666f726d72,
};

// normals[i] receives the standard normal variable first + i, finite (Box and
// Muller 1958, both of each pair). `first` is even.
inline void FillNormals(NormalUse use, std::uint64_t seed, std::uint64_t first,
                        std::span<float> normals) {
  const std::uint64_t stream =
      RandomBits(static_cast<std::uint64_t>(use), seed);
  for (std::size_t i = 0; i < normals.size(); i += 2) {
    // 1 - u is never 0.
    const double u = UniformFrom(RandomBits(stream, first + i));
    const double v = UniformFrom(RandomBits(stream, first + i + 1));
    const double radius = std::sqrt(-2 * std::log1p(-u));
    const double angle = 2 * std::numbers::pi * v;
    normals[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < normals.size()) {
      normals[i + 1] = static_cast<float>(radius * std::sin(angle));
    }
  }
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_NORMAL_H_
