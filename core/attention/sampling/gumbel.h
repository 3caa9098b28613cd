// Code that draws of perturbed weights share. Internal.
#ifndef ATTENDANT_CORE_ATTENTION_SAMPLING_GUMBEL_H_
#define ATTENDANT_CORE_ATTENTION_SAMPLING_GUMBEL_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/attention/sampling/sampling.h"
#include "core/attention/softmax/log_add.h"
#include "core/base/random.h"

namespace attendant {

// A sum of exps below this may have lost digits to underflow.
inline constexpr double kMinExp = 1e-250;

// Returns a standard Gumbel variable, -log(-log(u)) with u = 1 - (bits + 1/2) /
// 2^64, which is never 0 or 1. The smaller of u and 1 - u is computed from the
// bits, not from the other, so both tails have full relative precision.
inline double GumbelFrom(std::uint64_t bits) {
  const bool is_lower_half = bits < (std::uint64_t{1} << 63);
  const double smaller =
      (static_cast<double>(is_lower_half ? bits : ~bits) + 0.5) * 0x1p-64;
  const double exponential =
      is_lower_half ? -std::log1p(-smaller) : -std::log(smaller);
  return -std::log(exponential);
}

// Returns log(1 - exp(-exp(log_rate))).
inline double LogOneMinusExpMinusExp(double log_rate) {
  // Below this, 1 - exp(-rate) = rate within a relative rate / 2 < 2^-53, and
  // the rate itself may be too small for a double.
  if (log_rate < -37) return log_rate;
  const double rate = std::exp(log_rate);
  // Each form is used where it does not cancel (Maechler 2012).
  return rate < std::log(2.0) ? std::log(-std::expm1(-rate))
                              : std::log1p(-std::exp(-rate));
}

// Sets the probabilities of the slate's draws. log_weights are those of the
// draws, in their order; log_left is the log partition of the items not drawn;
// threshold is the greatest perturbed log weight of these, if there are any.
// Returns the log partition of all items.
inline double SetProbabilities(std::span<const double> log_weights,
                               double log_left, std::optional<double> threshold,
                               Slate& slate) {
  // From the last draw to the first, adding each draw to what was left after
  // it: nothing is ever subtracted.
  for (std::size_t d = log_weights.size(); d-- > 0;) {
    Draw& draw = slate.draws[d];
    log_left = LogAdd(log_left, log_weights[d]);
    draw.log_weight = log_weights[d] - log_left;
    if (threshold) {
      draw.log_inclusion_given_threshold =
          LogOneMinusExpMinusExp(log_weights[d] - *threshold);
    }
  }
  for (const Draw& draw : slate.draws) slate.log_probability += draw.log_weight;
  if (threshold) slate.kappa = *threshold - log_left;
  return log_left;
}

// An item's log weight plus its noise.
struct Perturbed {
  double log_weight = 0;
  std::size_t index = 0;
};

// Finds the `wanted` greatest values of log_weights[i] - max plus the noise of
// the seed and noise_keys[i]. All arrays have n entries; log_weights are
// finite, none above max; exps are exp(log_weights[i] - max).
template <typename LogWeight>
class GreatestPerturbed {
 public:
  // What the spans point to must outlive the object.
  GreatestPerturbed(std::span<const LogWeight> log_weights, double max,
                    std::span<const double> exps,
                    std::span<const std::uint64_t> noise_keys,
                    std::size_t wanted, std::uint64_t seed)
      : log_weights_(log_weights),
        max_(max),
        exps_(exps),
        noise_keys_(noise_keys),
        wanted_(wanted),
        seed_(seed) {
    first_.reserve(wanted);
  }

  // Considers the items from begin to end - 1. Offer each item once.
  void Offer(std::size_t begin, std::size_t end) {
    if (wanted_ == 0) return;
    const auto is_before = IsBefore();
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t bits = RandomBits(seed_, noise_keys_[i]);
      // The perturbed weight is log_weight - log(x), where x is exponentially
      // distributed and greater than UniformFrom(bits). If that bound is
      // already too great, the two logarithms are not needed.
      if (UniformFrom(bits) > exps_[i] * limit_) continue;
      // Relative to the greatest weight, not to the log partition, whose
      // rounding depends on the order of items.
      const Perturbed perturbed = {log_weights_[i] - max_ + GumbelFrom(bits),
                                   i};
      if (first_.size() == wanted_) {
        if (!is_before(perturbed, first_.front())) continue;
        std::ranges::pop_heap(first_, is_before);
        first_.pop_back();
      }
      first_.push_back(perturbed);
      std::ranges::push_heap(first_, is_before);
      // The slack is far above the rounding of the logarithms. While the limit
      // is no greater than this, no exp that underflowed belongs to a winner.
      if (first_.size() == wanted_ && first_.front().log_weight > -500) {
        limit_ = std::exp(-first_.front().log_weight) * (1 + 1e-9);
      }
    }
  }

  // Returns the greatest first; among equal ones, the one with the smaller key
  // first.
  std::vector<Perturbed> Sorted() && {
    std::sort_heap(first_.begin(), first_.end(), IsBefore());
    return std::move(first_);
  }

 private:
  auto IsBefore() const {
    return [keys = noise_keys_](const Perturbed& a, const Perturbed& b) {
      if (a.log_weight != b.log_weight) return a.log_weight > b.log_weight;
      return keys[a.index] < keys[b.index];
    };
  }

  std::span<const LogWeight> log_weights_;
  double max_;
  std::span<const double> exps_;
  std::span<const std::uint64_t> noise_keys_;
  std::size_t wanted_;
  std::uint64_t seed_;
  std::vector<Perturbed> first_;  // heap with the least on top
  // exp(-the least perturbed weight in first_), once first_ is full.
  double limit_ = std::numeric_limits<double>::infinity();
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SAMPLING_GUMBEL_H_
