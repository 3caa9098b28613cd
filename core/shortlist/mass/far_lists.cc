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

// Predictions take longer than reading this part of the keys.
constexpr std::int64_t kLeastPart = 16;

// Returns the lists that hold no key which weighs as much as the least of the
// best, or exp(log_most); a prediction says nothing of such keys.
std::span<const std::int32_t> ListsOfLightKeys(const InvertedLists& lists,
                                               const LogitReach& reach,
                                               double log_most) {
  thread_local std::vector<std::int32_t> found;
  found.clear();
  const double least = std::min(reach.least_of_best, log_most);
  for (std::size_t l = 0; l < reach.of_means.size(); ++l) {
    const auto list = static_cast<std::int32_t>(l);
    const double greatest = reach.of_means[l] +
                            reach.per_norm * lists.codes.MaxNormOf(list) +
                            reach.rounding;
    if (greatest < least) found.push_back(list);
  }
  return found;
}

std::int64_t CountKeys(const InvertedLists& lists,
                       std::span<const std::int32_t> some) {
  std::int64_t count = 0;
  for (const std::int32_t list : some) {
    const auto l = static_cast<std::size_t>(list);
    count += lists.offsets[l + 1] - lists.offsets[l];
  }
  return count;
}

// Sets `lightest` to the candidates whose keys are predicted to weigh least, as
// many as hold exp(log_most) together; ascending. Visited and empty lists are
// not among them.
void KeepLightest(const InvertedLists& lists, std::span<const float> log_sums,
                  double log_most, std::span<const std::int32_t> candidates,
                  std::vector<std::int32_t>& lightest) {
  // Each is a list and, above it, the order of the predicted mass of a key, as
  // what a list costs to read is its keys.
  thread_local std::vector<std::uint64_t> order;
  order.clear();
  for (const std::int32_t list : candidates) {
    const float log_sum = log_sums[list];
    if (log_sum > kMinusInfinityF && log_sum <= log_most) {
      order.push_back(std::uint64_t{OrderOf(log_sum - lists.log_counts[list])}
                          << 32 |
                      static_cast<std::uint32_t>(list));
    }
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
  shares.resize(log_masses.size());
  ActiveKernels().Exps(log_masses.data(),
                       static_cast<std::int64_t>(log_masses.size()), log_most,
                       shares.data());
  thread_local std::vector<std::uint8_t> is_light;
  is_light.assign(log_sums.size(), 0);
  double share = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    share += shares[i];
    if (share > 1) break;
    is_light[list_of(order[i])] = 1;
  }
  for (std::size_t l = 0; l < is_light.size(); ++l) {
    if (is_light[l] != 0) lightest.push_back(static_cast<std::int32_t>(l));
  }
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
  const double log_most = visited.log_sum + std::log(reach.max_share);
  const std::span<const std::int32_t> light =
      ListsOfLightKeys(lists, reach, log_most);
  if (CountKeys(lists, light) * kLeastPart < lists.key_count()) return;
  thread_local std::vector<float> log_sums;
  mass.PredictLists(lists, visited, log_sums);
  KeepLightest(lists, log_sums, log_most, light, far.lists);
  if (far.empty()) return;
  far.guess = mass.GuessOfLists(part, visited, far.lists, log_sums);
  // They may hold nothing, or almost three times as much.
  far.guess.log_variance = 2 * far.guess.log_sum;
  if (!std::isfinite(far.guess.log_sum)) far.Clear();
}

}  // namespace attendant
