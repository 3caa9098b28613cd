// What draws of perturbed weights have in common. Internal.
#ifndef ATTENDANT_CORE_ATTENTION_GUMBEL_H_
#define ATTENDANT_CORE_ATTENTION_GUMBEL_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/base/random.h"

namespace attendant {

// A standard Gumbel variable, -log(-log(u)) with u = 1 - (bits + 1/2) / 2^64,
// which is never 0 or 1. u or 1 - u, whichever is smaller, is taken from the
// bits rather than from the other: both tails have full relative precision.
inline double GumbelFrom(std::uint64_t bits) {
  const bool is_lower_half = bits < (std::uint64_t{1} << 63);
  const double smaller =
      (static_cast<double>(is_lower_half ? bits : ~bits) + 0.5) * 0x1p-64;
  const double exponential =
      is_lower_half ? -std::log1p(-smaller) : -std::log(smaller);
  return -std::log(exponential);
}

// log(1 - exp(-exp(log_rate))).
inline double LogOneMinusExpMinusExp(double log_rate) {
  // Below, 1 - exp(-rate) = rate within a relative rate / 2 < 2^-53, and the
  // rate itself may be too small for a double.
  if (log_rate < -37) return log_rate;
  const double rate = std::exp(log_rate);
  // Each form where it does not cancel (Maechler 2012).
  return rate < std::log(2.0) ? std::log(-std::expm1(-rate))
                              : std::log1p(-std::exp(-rate));
}

// A log weight plus its noise.
struct Perturbed {
  double log_weight = 0;
  std::size_t index = 0;
};

// The `wanted` greatest of log_weights[i] - max plus the noise of the seed and
// noise_keys[i], greatest first; of equal ones the lesser key is. All have n
// entries, at least `wanted`; log_weights are finite, none above max, and exps
// are exp(log_weights[i] - max).
template <typename LogWeight>
std::vector<Perturbed> GreatestPerturbed(
    std::span<const LogWeight> log_weights, double max,
    std::span<const double> exps, std::span<const std::uint64_t> noise_keys,
    std::size_t wanted, std::uint64_t seed) {
  // The least on top.
  std::vector<Perturbed> first;
  first.reserve(wanted);
  const auto is_before = [&](const Perturbed& a, const Perturbed& b) {
    if (a.log_weight != b.log_weight) return a.log_weight > b.log_weight;
    return noise_keys[a.index] < noise_keys[b.index];
  };
  // exp(-the least perturbed weight among them), once they are all there.
  double limit = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; wanted > 0 && i < log_weights.size(); ++i) {
    const std::uint64_t bits = RandomBits(seed, noise_keys[i]);
    // The perturbed weight is log_weight - log(x) with an x, exponentially
    // distributed, that is above UniformFrom(bits): where that alone is too
    // much, there is no need of two logarithms.
    if (UniformFrom(bits) > exps[i] * limit) continue;
    // Relative to the greatest and not to the log partition, whose rounding
    // depends on the order of items.
    const Perturbed perturbed = {log_weights[i] - max + GumbelFrom(bits), i};
    if (first.size() == wanted) {
      if (!is_before(perturbed, first.front())) continue;
      std::pop_heap(first.begin(), first.end(), is_before);
      first.pop_back();
    }
    first.push_back(perturbed);
    std::push_heap(first.begin(), first.end(), is_before);
    // The slack is far above the rounding of logarithms here. Exps that have
    // underflowed are none of a winner's while the limit is no greater.
    if (first.size() == wanted && first.front().log_weight > -500) {
      limit = std::exp(-first.front().log_weight) * (1 + 1e-9);
    }
  }
  std::sort_heap(first.begin(), first.end(), is_before);
  return first;
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_GUMBEL_H_
