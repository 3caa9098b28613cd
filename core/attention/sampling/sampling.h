// Draws items in proportion to their attention and reports the probability of
// each draw, so that one can learn from the items shown without bias.
#ifndef ATTENDANT_CORE_ATTENTION_SAMPLING_SAMPLING_H_
#define ATTENDANT_CORE_ATTENTION_SAMPLING_SAMPLING_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/interrupt.h"

namespace attendant {

// All functions are thread-safe: they hold no state.

// Returns the mean of several heads' log weights as the nearest finite logit:
// the mean may be beyond floats although the heads' logits are not.
inline float AsLogit(double log_weight) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(log_weight, -kMost, kMost));
}

struct Draw {
  std::int64_t index = 0;  // into the logits
  // Log of the conditional probability of this draw given the earlier ones. The
  // partition of the items left is summed directly, never obtained by
  // subtraction.
  double log_weight = 0;
  // log(1 - exp(-exp(log_weight_0 - kappa))), where log_weight_0 is the item's
  // log weight before any draw (Kool, van Hoof, Welling 2019, eq. 8). Set only
  // without replacement, and if kappa is set.
  std::optional<double> log_inclusion_given_threshold;
};

struct Slate {
  std::vector<Draw> draws;     // in the order drawn
  double log_probability = 0;  // of these items in this order
  // The greatest perturbed log weight of the items not drawn. Set only without
  // replacement, and if an item was left.
  std::optional<double> kappa;
};

// Makes `count` >= 0 independent draws from the softmax of finite logits [n];
// none if n is 0. O(n + count log count). The same seed gives the same slate
// for the same logits in the same order. Cancelled and DeadlineExceeded from
// the interrupt.
absl::StatusOr<Slate> SampleWithReplacement(std::span<const float> logits,
                                            std::int64_t count,
                                            std::uint64_t seed,
                                            const Interrupt& interrupt);

// Makes min(count, n) draws without replacement by Gumbel top-k (Kool et al.
// 2019) from finite logits [n]. An item's noise depends only on the seed and on
// its noise_key [n] (a hash of its id), so the draws do not depend on the order
// of items, and a smaller count draws a prefix; probabilities then agree up to
// the rounding of sums in doubles. O(n + count log count). Cancelled and
// DeadlineExceeded from the interrupt.
absl::StatusOr<Slate> SampleWithoutReplacement(
    std::span<const float> logits, std::span<const std::uint64_t> noise_keys,
    std::int64_t count, std::uint64_t seed, const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SAMPLING_SAMPLING_H_
