// Random numbers as functions of a seed and a counter: they have no state and
// no order, and are the same on every machine. Not for secrets.
#ifndef ATTENDANT_CORE_BASE_RANDOM_H_
#define ATTENDANT_CORE_BASE_RANDOM_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>

namespace attendant {

// A bijection on 64 bits that flips half of the output bits for each input bit
// flipped: the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
inline std::uint64_t MixBits(std::uint64_t bits) {
  bits ^= bits >> 30;
  bits *= 0xbf58476d1ce4e5b9u;
  bits ^= bits >> 27;
  bits *= 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

// The increment of SplitMix64's state.
inline constexpr std::uint64_t kSplitMixStep = 0x9e3779b97f4a7c15u;

// Returns the random bits of `seed` and `counter`.
inline std::uint64_t RandomBits(std::uint64_t seed, std::uint64_t counter) {
  return MixBits(MixBits(seed + kSplitMixStep) ^ counter);
}

// Returns element `index`, from 0, of the SplitMix64 sequence of `seed`.
// Cheaper than RandomBits, but seeds that differ by multiples of kSplitMixStep
// give shifted copies of one sequence.
inline std::uint64_t SplitMixBits(std::uint64_t seed, std::uint64_t index) {
  return MixBits(seed + kSplitMixStep * (index + 1));
}

// Returns a number in [0, 1), a multiple of 2^-53.
inline double UniformFrom(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// The purposes of normal numbers. The numbers of one seed are independent for
// different purposes, and independent of RandomBits of that seed.
enum class NormalUse : std::uint64_t {
  kHashDirections = 0x6c73682d64697273,
  kIndexDirections = 0x6964782d64697273,
  kRowReduction = 0x6c696e666f726d72,
};

// Fills `normals` with the standard normal variables `first` + i, all finite
// (Box and Muller 1958, using both of each pair). `first` must be even.
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
