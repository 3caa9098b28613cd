#include "core/attention/sampling/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/attention/sampling/gumbel.h"
#include "core/base/minus_infinity.h"
#include "core/base/random.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// The number of rows between checks of the interrupt.
constexpr std::size_t kInterruptRows = 4096;

// Calls visit(begin, end) for all rows, some thousands at a time.
template <typename Visit>
absl::Status VisitRows(std::size_t n, const Interrupt& interrupt,
                       const Visit& visit) {
  for (std::size_t begin = 0; begin < n; begin += kInterruptRows) {
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    visit(begin, std::min(n, begin + kInterruptRows));
  }
  return absl::OkStatus();
}

// Returns the log partition, relative to `max`, of the logits whose positions
// are not in `drawn`; -infinity if none is left. exps are exp(logit - max), and
// 0 where drawn.
double LogPartitionOfRest(std::span<const float> logits, double max,
                          std::span<const double> exps,
                          std::span<const std::size_t> drawn) {
  double sum = 0;
  for (const double e : exps) sum += e;
  if (sum > kMinExp) return std::log(sum);
  // The logits left are far below those drawn, so use their own max.
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

std::vector<std::int64_t> Positions(std::size_t n) {
  std::vector<std::int64_t> positions(n);
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

}  // namespace

absl::StatusOr<Slate> SampleWithReplacement(std::span<const float> logits,
                                            std::int64_t count,
                                            std::uint64_t seed,
                                            const Interrupt& interrupt) {
  Slate slate;
  if (logits.empty()) return slate;
  const std::size_t n = logits.size();
  const double max = *std::ranges::max_element(logits);
  std::vector<double> sums(n);  // of exp(logit - max), each inclusive
  double sum = 0;
  std::size_t last = 0;  // last with a weight above 0
  ATTENDANT_RETURN_IF_ERROR(
      VisitRows(n, interrupt, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
          const double e = std::exp(logits[i] - max);
          if (e > 0) last = i;
          sums[i] = sum += e;
        }
      }));
  const double log_sum = std::log(sum);

  const auto draw_count = static_cast<std::size_t>(count);
  std::vector<double> targets(draw_count);
  for (std::size_t d = 0; d < draw_count; ++d) {
    targets[d] = sum * UniformFrom(RandomBits(seed, d));
  }
  // In ascending order, one pass over the sums serves all draws.
  std::vector<std::int64_t> order = Positions(draw_count);
  std::ranges::sort(order, [&](std::int64_t a, std::int64_t b) {
    return targets[a] < targets[b];
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

absl::StatusOr<Slate> SampleWithoutReplacement(
    std::span<const float> logits, std::span<const std::uint64_t> noise_keys,
    std::int64_t count, std::uint64_t seed, const Interrupt& interrupt) {
  Slate slate;
  if (logits.empty()) return slate;
  const std::size_t n = logits.size();
  const double max = *std::ranges::max_element(logits);
  std::vector<double> exps(n);
  ATTENDANT_RETURN_IF_ERROR(
      VisitRows(n, interrupt, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
          exps[i] = std::exp(logits[i] - max);
        }
      }));

  const std::size_t draw_count = std::min(static_cast<std::size_t>(count), n);
  const bool leaves_some = draw_count < n;
  // The draws and the next one, which sets kappa.
  GreatestPerturbed<float> greatest(logits, max, exps, noise_keys,
                                    draw_count + (leaves_some ? 1 : 0), seed);
  ATTENDANT_RETURN_IF_ERROR(VisitRows(
      n, interrupt,
      [&](std::size_t begin, std::size_t end) { greatest.Offer(begin, end); }));
  std::vector<Perturbed> first = std::move(greatest).Sorted();

  std::optional<double> threshold;
  if (leaves_some) {
    threshold = first.back().log_weight;
    first.pop_back();
  }
  std::vector<std::size_t> drawn;
  drawn.reserve(draw_count);
  for (const Perturbed& draw : first) {
    drawn.push_back(draw.index);
    exps[draw.index] = 0;
  }
  slate.draws.resize(draw_count);
  std::vector<double> log_weights(draw_count);
  for (std::size_t d = 0; d < draw_count; ++d) {
    slate.draws[d].index = static_cast<std::int64_t>(drawn[d]);
    log_weights[d] = logits[drawn[d]] - max;
  }
  SetProbabilities(log_weights, LogPartitionOfRest(logits, max, exps, drawn),
                   threshold, slate);
  return slate;
}

}  // namespace attendant
