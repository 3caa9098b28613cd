#include "core/attention/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/attention/log_add.h"

namespace attendant {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMinusInfinity = -kInfinity;

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
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// A standard Gumbel variable, -log(-log(u)) with u = 1 - (bits + 1/2) / 2^64,
// which is never 0 or 1. u or 1 - u, whichever is smaller, is taken from the
// bits rather than from the other: both tails have full relative precision.
double Gumbel(std::uint64_t bits) {
  const bool is_lower_half = bits < (std::uint64_t{1} << 63);
  const double smaller =
      (static_cast<double>(is_lower_half ? bits : ~bits) + 0.5) * 0x1p-64;
  const double exponential =
      is_lower_half ? -std::log1p(-smaller) : -std::log(smaller);
  return -std::log(exponential);
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

// exp(logit - max) below this may have lost digits to underflow.
constexpr double kLeastExp = 1e-250;

// The log partition, relative to `max`, of the logits that are not at the
// positions `drawn`; -infinity if none is left. exps are exp(logit - max), and
// 0 where drawn.
double LogPartitionOfRest(std::span<const float> logits, double max,
                          std::span<const double> exps,
                          std::span<const std::size_t> drawn) {
  double sum = 0;
  for (const double e : exps) sum += e;
  if (sum > kLeastExp) return std::log(sum);
  // All that is left is far below what was drawn: take its own max.
  std::vector<bool> is_drawn(logits.size());
  for (const std::size_t i : drawn) is_drawn[i] = true;
  double rest_max = kMinusInfinity;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!is_drawn[i]) rest_max = std::max(rest_max, double{logits[i]});
  }
  if (rest_max == kMinusInfinity) return kMinusInfinity;
  sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!is_drawn[i]) sum += std::exp(logits[i] - rest_max);
  }
  return rest_max - max + std::log(sum);
}

struct Perturbed {
  double logit = 0;
  std::size_t index = 0;
};

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
  std::vector<double> exps(n);
  for (std::size_t i = 0; i < n; ++i) exps[i] = std::exp(logits[i] - max);

  const std::size_t draw_count = std::min(static_cast<std::size_t>(count), n);
  const bool leaves_some = draw_count < n;
  // The draws and the next one, those that come last on top.
  std::vector<Perturbed> first;
  const std::size_t wanted = draw_count + (leaves_some ? 1 : 0);
  first.reserve(wanted);
  const auto is_before = [&](const Perturbed& a, const Perturbed& b) {
    if (a.logit != b.logit) return a.logit > b.logit;
    return noise_keys[a.index] < noise_keys[b.index];
  };
  // exp(-the least perturbed logit among them), once they are all there.
  double limit = kInfinity;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t bits = RandomBits(seed, noise_keys[i]);
    // The perturbed logit is logit - log(x) with an x, exponentially
    // distributed, that is above Uniform(bits): where that alone is too much,
    // there is no need of two logarithms.
    if (Uniform(bits) > exps[i] * limit) continue;
    // Relative to the greatest logit and not to the log partition, whose
    // rounding depends on the order of items.
    const Perturbed perturbed = {logits[i] - max + Gumbel(bits), i};
    if (first.size() == wanted) {
      if (!is_before(perturbed, first.front())) continue;
      std::pop_heap(first.begin(), first.end(), is_before);
      first.pop_back();
    }
    first.push_back(perturbed);
    std::push_heap(first.begin(), first.end(), is_before);
    // The slack is far above the rounding of logarithms here. Exps that have
    // underflowed are none of a winner's while the limit is no greater.
    if (first.size() == wanted && first.front().logit > -500) {
      limit = std::exp(-first.front().logit) * (1 + 1e-9);
    }
  }
  std::sort_heap(first.begin(), first.end(), is_before);

  std::optional<double> threshold;
  if (leaves_some) {
    threshold = first.back().logit;
    first.pop_back();
  }
  std::vector<std::size_t> drawn;
  drawn.reserve(draw_count);
  for (const Perturbed& draw : first) {
    drawn.push_back(draw.index);
    exps[draw.index] = 0;
  }
  // The log partition of what was left before each draw, from the last draw to
  // the first: what was drawn later is added, nothing is ever subtracted.
  double log_left = LogPartitionOfRest(logits, max, exps, drawn);
  slate.draws.resize(draw_count);
  for (std::size_t d = draw_count; d-- > 0;) {
    Draw& draw = slate.draws[d];
    draw.index = static_cast<std::int64_t>(drawn[d]);
    const double logit = logits[drawn[d]] - max;
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
