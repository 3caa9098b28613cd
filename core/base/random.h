// Random numbers that are functions of a seed and a counter: no state, so no
// order, and the same on every machine. Not for secrets.
#ifndef ATTENDANT_CORE_BASE_RANDOM_H_
#define ATTENDANT_CORE_BASE_RANDOM_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>

namespace attendant {

// A bijection of 64 bits that changes half of them for each bit changed: the
// finaliser of SplitMix64 (Steele, Lea, Flood 2014).
inline std::uint64_t MixBits(std::uint64_t bits) {
  bits ^= bits >> 30;
  bits *= 0xbf58476d1ce4e5b9u;
  bits ^= bits >> 27;
  bits *= 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

// What SplitMix64's state advances by.
inline constexpr std::uint64_t kSplitMixStep = 0x9e3779b97f4a7c15u;

// Random bits of a seed and a counter.
inline std::uint64_t RandomBits(std::uint64_t seed, std::uint64_t counter) {
  return MixBits(MixBits(seed + kSplitMixStep) ^ counter);
}

// Number `index`, from 0, of SplitMix64 from a seed: cheaper than RandomBits,
// but seeds that differ by multiples of kSplitMixStep give one sequence.
inline std::uint64_t SplitMixBits(std::uint64_t seed, std::uint64_t index) {
  return MixBits(seed + kSplitMixStep * (index + 1));
}

// In [0, 1), in steps of 2^-53.
inline double UniformFrom(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// What normal numbers are drawn for. Those of one seed for two uses are
// independent, and of RandomBits of that seed.
enum class NormalUse : std::uint64_t {
  kHashDirections = 0x6c73682d64697273,
  kIndexDirections = 0x6964782d64697273,
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

#endif  // ATTENDANT_CORE_BASE_RANDOM_H_
