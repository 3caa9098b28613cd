#include "core/shortlist/mass/far_lists.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/base/minus_infinity.h"
#include "core/kernels/float_order.h"
#include "core/kernels/kernels.h"
#include "core/kernels/sort.h"

namespace attendant {
namespace {

// Share of the mass that is known already which all far lists together may
// hold. Of Fashion-MNIST, a proof then leaves out half of the keys at a
// temperature of .1, and at .02 as many as without a limit.
constexpr double kMaxShare = 1.0 / 2000;
// Predictions take longer than reading this part of the keys.
constexpr std::int64_t kLeastPart = 16;
// Deviation of the mass of far lists as a share of what they are predicted to
// hold.
constexpr double kDeviation = 0.5;

// Sets exps[i] to exp(numbers[i] - max). No number is above max.
void Exps(std::span<const float> numbers, double max,
          std::vector<double>& exps) {
  exps.resize(numbers.size());
  ActiveKernels().Exps(numbers.data(), static_cast<std::int64_t>(exps.size()),
                       max, exps.data());
}

// Sets `found` to the lists whose greatest possible logit is below that of the
// best, and returns how many keys they hold.
std::int64_t FindWithoutBest(const InvertedLists& lists,
                             const LogitReach& reach,
                             std::vector<std::int32_t>& found) {
  found.clear();
  std::int64_t key_count = 0;
  for (std::size_t l = 0; l < reach.of_means.size(); ++l) {
    const auto list = static_cast<std::int32_t>(l);
    const double greatest = reach.of_means[l] +
                            reach.per_norm * lists.codes.MaxNormOf(list) +
                            reach.rounding;
    if (greatest >= reach.least_of_best) continue;
    found.push_back(list);
    key_count += lists.offsets[l + 1] - lists.offsets[l];
  }
  return key_count;
}

// Sets `lightest` to the candidates whose keys are predicted to weigh least, as
// many as hold kMaxShare of exp(log_known) together; ascending. Visited and
// empty lists are not among them.
void KeepLightest(const InvertedLists& lists, std::span<const float> log_sums,
                  double log_known, std::span<const std::int32_t> candidates,
                  std::vector<std::int32_t>& lightest) {
  // Each is a list and, above it, the order of the predicted mass of a key, as
  // what a list costs to read is its keys.
  thread_local std::vector<std::uint64_t> order;
  order.clear();
  const double log_most = log_known + std::log(kMaxShare);
  for (const std::int32_t list : candidates) {
    if (log_sums[list] == kMinusInfinityF || log_sums[list] > log_most) {
      continue;
    }
    order.push_back(
        std::uint64_t{OrderOf(log_sums[list] - lists.log_counts[list])} << 32 |
        static_cast<std::uint32_t>(list));
  }
  if (order.empty()) return;
  SortAscending(std::span(order));
  const auto list_of = [](std::uint64_t place) { return place & 0xffffffff; };
  thread_local std::vector<float> log_masses;
  thread_local std::vector<double> shares;
  log_masses.clear();
  for (const std::uint64_t place : order) {
    log_masses.push_back(log_sums[list_of(place)]);
  }
  Exps(log_masses, log_known, shares);
  thread_local std::vector<std::uint8_t> is_light;
  is_light.assign(log_sums.size(), 0);
  double share = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    share += shares[i];
    if (share > kMaxShare) break;
    is_light[list_of(order[i])] = 1;
  }
  for (std::size_t l = 0; l < is_light.size(); ++l) {
    if (is_light[l] != 0) lightest.push_back(static_cast<std::int32_t>(l));
  }
}

// Sums over the far lists, if the logits of each are normal (see
// UnscoredMass::SetMeans).
UnscoredGuess GuessOf(const FarLists& far, const ListPart& part,
                      std::span<const float> log_sums,
                      std::span<const float> logits_of_means) {
  thread_local std::vector<float> log_masses;
  thread_local std::vector<float> log_squares;
  thread_local std::vector<double> masses;
  thread_local std::vector<double> squares;
  log_masses.clear();
  log_squares.clear();
  float max = kMinusInfinityF;
  for (const std::int32_t list : far.lists) {
    const float log_mass = log_sums[list];
    max = std::max(max, log_mass);
    log_masses.push_back(log_mass);
    log_squares.push_back(
        std::min(2 * log_mass, 4 * log_mass - 3 * part.lists->log_counts[list] -
                                   2 * logits_of_means[list]));
  }
  Exps(log_masses, max, masses);
  Exps(log_squares, 2 * max, squares);
  double sum = 0;
  double square_sum = 0;
  double logit_sum = 0;
  double count = 0;
  for (std::size_t i = 0; i < far.lists.size(); ++i) {
    const std::int32_t list = far.lists[i];
    sum += masses[i];
    square_sum += squares[i];
    logit_sum +=
        masses[i] * (2 * (log_masses[i] - part.lists->log_counts[list]) -
                     logits_of_means[list]);
    count += part.counts()[list];
  }
  const double log_sum = max + std::log(sum);
  return {.count = static_cast<std::int64_t>(count),
          .log_sum = log_sum,
          .log_variance = 2 * (log_sum + std::log(kDeviation)),
          .mean_logit = logit_sum / sum,
          .log_mean_exp = max + std::log(square_sum / sum)};
}

}  // namespace

void FindFarLists(const UnscoredMass& mass, const ListPart& part,
                  const VisitedMass& visited, const LogitReach& reach,
                  FarLists& far) {
  far.Clear();
  const InvertedLists& lists = *part.lists;
  if (!mass.usable() || !mass.LieAlike(visited) ||
      visited.log_sum == kMinusInfinity ||
      !lists.codes.KnowsLists(reach.of_means.size())) {
    return;
  }
  thread_local std::vector<std::int32_t> without_best;
  if (FindWithoutBest(lists, reach, without_best) * kLeastPart <
      lists.key_count()) {
    return;
  }
  thread_local std::vector<float> log_sums;
  mass.PredictLists(lists, visited, log_sums);
  KeepLightest(lists, log_sums, visited.log_sum, without_best, far.lists);
  if (!far.empty()) far.guess = GuessOf(far, part, log_sums, reach.of_means);
}

}  // namespace attendant
