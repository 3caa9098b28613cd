// Routes of queries: how many lists a query visits for its goals, what it reads
// of keys, and how many keys it scores from floats.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/shortlist/ivf/list_index.h"
#include "core/shortlist/scan/scan_costs.h"

namespace attendant {
namespace {

// From this many keys on, 4 bits are read first: they then save more than it
// costs to score the keys from floats that they leave in question.
constexpr std::int64_t kKeysFor4Bits = 1000;

}  // namespace

std::int64_t ListIndex::ProbesOf(const ScanGoals& goals) const {
  std::int64_t count = training_->calibration.probe_count;
  if (goals.probe_count > 0) {
    count = goals.probe_count;
  } else if (goals.recall > 0) {
    count = training_->calibration.ProbesForRecall(goals.recall);
  }
  return std::min(count, list_count());
}

// Costs are those of keys in a cache (bench/README.md, Small catalogs), where
// small lists cost more to visit than to read their keys. Counts the training's
// keys, so that all indexes of the training decide alike.
bool ListIndex::ProofCostsLess(std::int64_t probe_count) const {
  const double cost_of_code = 2 + static_cast<double>(dim()) / 32;
  const auto list_count = static_cast<double>(this->list_count());
  const auto key_count = static_cast<double>(training_->key_count);
  const auto probes = static_cast<double>(probe_count);
  return key_count * cost_of_code <
         list_count * kCostOfList +
             probes * (kCostOfVisit + key_count / list_count * cost_of_code);
}

// Sets how many lists are visited, or by which margin.
void ListIndex::RouteToLists(const ScanGoals& goals, std::int64_t k,
                             Route& route) const {
  route.probe_count = ProbesOf(goals);
  if (goals.probe_count > 0) return;
  const Calibration& calibration = training_->calibration;
  const std::int64_t learned_count = calibration.depths.front().neighbour_count;
  route.margin = calibration.MarginFor(
      goals.recall > 0 ? goals.recall : training_->target_recall);
  route.above_target = goals.recall > training_->target_recall;
  if (k <= learned_count) return;
  // Margins are learned for fewer neighbours. The best k of all keys are as far
  // away as the best learned_count are if the share learned_count / k of the
  // keys is eligible. It is not known how many fewer lists suffice there for a
  // lower recall. These numbers of lists are learned from keys and for the
  // target; the margin tells what more is needed by queries far from keys, and
  // for a higher recall.
  route.deep = true;
  const double rate =
      static_cast<double>(learned_count) / static_cast<double>(k);
  const auto probe_count = static_cast<std::int64_t>(std::ceil(
      ProbesFor(std::max(route.probe_count, calibration.probe_count), rate)));
  route.probe_count = std::min(list_count(), probe_count);
}

// True if proving the recall costs less than searching for it, provided that
// codes tell most keys apart.
bool ListIndex::MayProve(const ScanQuery& query, const AttentionState& state,
                         std::int64_t probe_count) const {
  const ScanGoals& goals = query.goals;
  return goals.recall > 0 && goals.probe_count == 0 &&
         goals.mass_precision == 0 && !IsMasked(query) &&
         HasCodesFor(query, state) &&
         kKeysPerKept * state.top().k() <= lists_.key_count() &&
         ProofCostsLess(probe_count);
}

// Sets what is read of the lists: codes, and with how many bits, or floats.
void ListIndex::RouteThroughKeys(const ScanQuery& query,
                                 const AttentionState& state,
                                 Route& route) const {
  const std::int64_t k = state.top().k();
  const std::int64_t key_count = lists_.key_count();
  const bool pools = state.value_dim() > 0;
  const std::int64_t kept = std::max(k, route.options.rescore_count);
  const bool saves_by_code =
      route.options.certified || key_count * dim() > kCachedFloats;
  // Lists that are not visited cannot be pooled. A pass over a few lists takes
  // the keys of all segments of the training together, however few are here.
  route.by_code =
      HasCodesFor(query, state) &&
      (route.complete ? kKeysPerKept * kept <= key_count && saves_by_code
                      : !pools);
  if (route.by_code && pools) route.options.values = ValuesOf(query, state);
  const std::int64_t taken =
      route.complete ? key_count
                     : training_->key_count * route.probe_count / list_count();
  route.options.bits = !route.options.certified && taken >= kKeysFor4Bits
                           ? CodeBits::k4
                           : CodeBits::k8;
  if (route.options.certified && !route.options.bounds &&
      route.options.values == nullptr) {
    route.near_list_count = NearListsFor(k);
  }
}

ListIndex::Route ListIndex::RouteFor(const ScanQuery& query,
                                     const AttentionState& state) const {
  const ScanGoals& goals = query.goals;
  Route route;
  RouteToLists(goals, state.top().k(), route);
  CodePassOptions& options = route.options;
  options.certified = goals.certified || goals.recall >= 1 ||
                      MayProve(query, state, route.probe_count);
  options.bounds = goals.certified;
  route.complete = query.exhaustive || options.certified ||
                   goals.mass_precision > 0 ||
                   (dim() < kMinCodedDim && goals.probe_count == 0) ||
                   route.probe_count >= list_count();
  if (route.complete && !options.certified) {
    options.rescore_count = kRescoreCount;
    options.precision =
        goals.mass_precision > 0 ? goals.mass_precision : kUnstatedPrecision;
    options.few_codes = lists_.key_count() * dim() <=
                        (state.value_dim() > 0 ? kFewPooledCodes : kFewCodes);
    options.key_share = key_share_;
  }
  // Spare recall of a single list allows codes alone to decide about some keys.
  // It is known for all keys, not for those that a mask leaves.
  if (!route.complete && route.margin && !route.deep && goals.recall > 0 &&
      !IsMasked(query)) {
    options.lost_count = training_->calibration.SpareRecall(goals.recall) *
                         static_cast<double>(state.top().k());
  }
  RouteThroughKeys(query, state, route);
  return route;
}

}  // namespace attendant
