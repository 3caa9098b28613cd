#include "core/shortlist/calibration/choose_lists.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/shortlist/calibration/sample_margins.h"
#include "core/shortlist/scan/scan_costs.h"

namespace attendant {
namespace {

// Shares of the lists that are tried, in steps of half an octave down to a
// quarter.
constexpr int kMaxHalvings = 4;
// Recalls that queries ask for.
constexpr double kAskedRecalls[] = {0.95, 0.99};

// Cost of scoring a key of a visited list by its code, in addition to
// kCostOfVisit.
constexpr double kCostOfKey = 2.5;

// Returns the cost of a query, in the mean over kAskedRecalls.
double CostOf(const InvertedLists& lists, const SampleQueries& sample,
              int thread_count) {
  const SampleMargins margins(lists, sample, thread_count);
  double cost = 0;
  for (const double recall : kAskedRecalls) {
    const SampleMargins::Visits visits =
        margins.MeanVisits(margins.MarginFor(recall));
    cost += static_cast<double>(lists.list_count()) * kCostOfList +
            visits.list_count * kCostOfVisit + visits.key_count * kCostOfKey;
  }
  return cost;
}

}  // namespace

void ChooseLists(const ListTree& tree, const SampleQueries& sample,
                 const ListSums& sums, std::uint64_t seed, int thread_count,
                 InvertedLists& lists) {
  const std::vector<std::int64_t> offsets = lists.offsets;
  const auto most = static_cast<std::int64_t>(tree.places().size());
  const auto merge_to = [&](std::int64_t count) {
    const std::vector<std::int32_t> begins = tree.Cut(count);
    lists.offsets.clear();
    for (const std::int32_t place : begins) {
      lists.offsets.push_back(offsets[place]);
    }
    lists.Summarise(sums.Merged(begins), seed);
  };
  std::int64_t best = most;
  double best_cost = 0;
  for (int halving = 0; halving <= kMaxHalvings; ++halving) {
    const auto count =
        std::llround(static_cast<double>(most) * std::exp2(-0.5 * halving));
    if (count < 1) break;
    merge_to(count);
    const double cost = CostOf(lists, sample, thread_count);
    if (halving == 0 || cost < best_cost) {
      best = count;
      best_cost = cost;
    }
  }
  merge_to(best);
}

}  // namespace attendant
