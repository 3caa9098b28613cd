#include "core/attention/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace attendant {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// A bijection of 64 bits that changes half of them for each bit changed: the
// finaliser of SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t Mix(std::uint64_t bits) {
  bits ^= bits >> 30;
  bits *= 0xbf58476d1ce4e5b9u;
  bits ^= bits >> 27;
  bits *= 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

// Random bits as a function of seed and counter alone: no state, so no order.
std::uint64_t RandomBits(std::uint64_t seed, std::uint64_t counter) {
  return Mix(Mix(seed + 0x9e3779b97f4a7c15u) ^ counter);
}

// In [0, 1), in steps of 2^-53.
double Uniform(std::uint64_t bits) {
  return std::ldexp(static_cast<double>(bits >> 11), -53);
}

// A standard Gumbel variable, -log(-log(u)) with u = 1 - (bits + 1/2) / 2^64,
// which is never 0 or 1. u or 1 - u, whichever is smaller, is taken from the
// bits rather than from the other: both tails have full relative precision.
double Gumbel(std::uint64_t bits) {
  const bool is_lower_half = bits < (std::uint64_t{1} << 63);
  const double smaller =
      std::ldexp(static_cast<double>(is_lower_half ? bits : ~bits) + 0.5, -64);
  const double exponential =
      is_lower_half ? -std::log1p(-smaller) : -std::log(smaller);
  return -std::log(exponential);
}

// log(exp(a) + exp(b)); either may be -infinity.
double LogAdd(double a, double b) {
  const double greater = std::max(a, b);
  if (greater == kMinusInfinity) return greater;
  return greater + std::log1p(std::exp(std::min(a, b) - greater));
}

// log(1 - exp(-exp(log_rate))).
double LogOneMinusExpMinusExp(double log_rate) {
  // Below, 1 - exp(-rate) = rate within a relative rate / 2 < 2^-53, and the
  // rate itself may be too small for a double.
  if (log_rate < -37) return log_rate;
  const double rate = std::exp(log_rate);
  // Each form where it does not cancel (Maechler 2012).
  return rate < std::log(2.0) ? std::log(-std::expm1(-rate))
                              : std::log1p(-std::exp(-rate));
}

// log sum exp; -infinity of none.
template <typename LogitOf>
double LogSumExp(std::span<const std::int64_t> indices,
                 const LogitOf& logit_of) {
  double max = kMinusInfinity;
  for (const std::int64_t index : indices) {
    max = std::max(max, logit_of(index));
  }
  if (max == kMinusInfinity) return max;
  double sum = 0;
  for (const std::int64_t index : indices) {
    sum += std::exp(logit_of(index) - max);
  }
  return max + std::log(sum);
}

std::vector<std::int64_t> Positions(std::size_t n) {
  std::vector<std::int64_t> positions(n);
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

}  // namespace

Slate SampleWithReplacement(std::span<const float> logits, std::int64_t count,
                            std::uint64_t seed) {
  Slate slate;
  if (logits.empty()) return slate;
  const std::size_t n = logits.size();
  const double max = *std::max_element(logits.begin(), logits.end());
  std::vector<double> sums(n);  // of exp(logit - max) up to and with each
  double sum = 0;
  std::size_t last = 0;  // that has a weight above 0
  for (std::size_t i = 0; i < n; ++i) {
    const double e = std::exp(logits[i] - max);
    if (e > 0) last = i;
    sums[i] = sum += e;
  }
  const double log_sum = std::log(sum);

  const auto draw_count = static_cast<std::size_t>(count);
  std::vector<double> targets(draw_count);
  for (std::size_t d = 0; d < draw_count; ++d) {
    targets[d] = sum * Uniform(RandomBits(seed, d));
  }
  // In ascending order one walk along the sums serves all draws.
  std::vector<std::int64_t> order = Positions(draw_count);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return targets[static_cast<std::size_t>(a)] <
           targets[static_cast<std::size_t>(b)];
  });
  slate.draws.resize(draw_count);
  std::size_t i = 0;
  for (const std::int64_t position : order) {
    const auto d = static_cast<std::size_t>(position);
    // A target may round up to the whole sum.
    while (i < last && sums[i] <= targets[d]) ++i;
    slate.draws[d].index = static_cast<std::int64_t>(i);
    slate.draws[d].log_weight = logits[i] - max - log_sum;
  }
  for (const Draw& draw : slate.draws) slate.log_probability += draw.log_weight;
  return slate;
}

Slate SampleWithoutReplacement(std::span<const float> logits,
                               std::span<const std::uint64_t> noise_keys,
                               std::int64_t count, std::uint64_t seed) {
  Slate slate;
  if (logits.empty()) return slate;
  const std::size_t n = logits.size();
  const double max = *std::max_element(logits.begin(), logits.end());
  const auto logit_of = [&](std::int64_t i) {
    return logits[static_cast<std::size_t>(i)] - max;
  };
  const auto key_of = [&](std::int64_t i) {
    return noise_keys[static_cast<std::size_t>(i)];
  };
  // Relative to the greatest logit and not to their log partition, whose
  // rounding depends on the order of items.
  std::vector<double> perturbed(n);
  for (std::size_t i = 0; i < n; ++i) {
    perturbed[i] = logits[i] - max + Gumbel(RandomBits(seed, noise_keys[i]));
  }

  // The first draw_count + 1 of the order of draws, then the rest in any.
  const auto is_before = [&](std::int64_t a, std::int64_t b) {
    const double perturbed_a = perturbed[static_cast<std::size_t>(a)];
    const double perturbed_b = perturbed[static_cast<std::size_t>(b)];
    if (perturbed_a != perturbed_b) return perturbed_a > perturbed_b;
    return key_of(a) < key_of(b);
  };
  const auto draw_count = std::min(static_cast<std::size_t>(count), n);
  std::vector<std::int64_t> order = Positions(n);
  const auto drawn_end =
      order.begin() + static_cast<std::ptrdiff_t>(draw_count);
  if (draw_count < n) {
    std::nth_element(order.begin(), drawn_end, order.end(), is_before);
  }
  std::sort(order.begin(), drawn_end, is_before);

  std::optional<double> threshold;
  if (draw_count < n)
    threshold = perturbed[static_cast<std::size_t>(*drawn_end)];
  // The log partition of what was left before each draw, from the last draw to
  // the first: what was drawn later is added, nothing is ever subtracted.
  double log_left = LogSumExp(std::span(order).subspan(draw_count), logit_of);
  slate.draws.resize(draw_count);
  for (std::size_t d = draw_count; d-- > 0;) {
    Draw& draw = slate.draws[d];
    draw.index = order[d];
    const double logit = logit_of(draw.index);
    log_left = LogAdd(log_left, logit);
    draw.log_weight = logit - log_left;
    if (threshold) {
      draw.log_inclusion_given_threshold =
          LogOneMinusExpMinusExp(logit - *threshold);
    }
  }
  for (const Draw& draw : slate.draws) slate.log_probability += draw.log_weight;
  // log_left is now the log partition of all.
  if (threshold) slate.kappa = *threshold - log_left;
  return slate;
}

}  // namespace attendant
