#include "core/attention/sampling/group_sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/attention/sampling/gumbel.h"
#include "core/base/minus_infinity.h"
#include "core/base/random.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Draws with replacement take two random numbers; the second has this seed.
constexpr std::uint64_t kWithinGroup = 0x6a09e667f3bcc909u;

// All masses, relative to the greatest.
struct Masses {
  explicit Masses(std::span<const double> log_masses)
      : max(*std::ranges::max_element(log_masses)), exps(log_masses.size()) {
    for (std::size_t g = 0; g < exps.size(); ++g) {
      exps[g] = std::exp(log_masses[g] - max);
    }
  }

  double max;
  std::vector<double> exps;
};

// A group whose items are known, with the items' shares of its mass.
struct OpenGroup {
  std::size_t group = 0;
  std::vector<double> log_shares;
  std::vector<double> shares;
  std::vector<std::uint64_t> noise_keys;
};

absl::StatusOr<OpenGroup> OpenUp(ItemGroups& groups, std::size_t group) {
  OpenGroup opened = {.group = group,
                      .log_shares = {0},
                      .shares = {1},
                      .noise_keys = {groups.noise_keys()[group]}};
  if (groups.item_counts()[group] == 1) return opened;
  GroupItems items;
  ATTENDANT_RETURN_IF_ERROR(groups.Open(group, items));
  const std::size_t n = items.log_weights.size();
  const double max = *std::ranges::max_element(items.log_weights);
  opened.shares.resize(n);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sum += opened.shares[i] = std::exp(items.log_weights[i] - max);
  }
  const double log_sum = std::log(sum);
  opened.log_shares.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    opened.shares[i] /= sum;
    opened.log_shares[i] = items.log_weights[i] - max - log_sum;
  }
  opened.noise_keys = std::move(items.noise_keys);
  return opened;
}

// An item's perturbed log weight, relative to the greatest mass.
struct Leaf {
  double perturbed = 0;
  std::size_t opened = 0;  // index of its group among the opened ones
  std::size_t item = 0;
  double log_weight = 0;
  std::uint64_t noise_key = 0;
};

bool IsBefore(const Leaf& a, const Leaf& b) {
  if (a.perturbed != b.perturbed) return a.perturbed > b.perturbed;
  return a.noise_key < b.noise_key;
}

// Keeps the `wanted` >= 1 best leaves.
class BestLeaves {
 public:
  explicit BestLeaves(std::size_t wanted) : wanted_(wanted) {}

  // A leaf must be above this to enter; -infinity while there is room.
  double threshold() const {
    return heap_.size() < wanted_ ? kMinusInfinity : heap_.front().perturbed;
  }

  void Offer(const Leaf& leaf) {
    if (heap_.size() == wanted_) {
      if (!IsBefore(leaf, heap_.front())) return;
      std::ranges::pop_heap(heap_, IsBefore);
      heap_.pop_back();
    }
    heap_.push_back(leaf);
    std::ranges::push_heap(heap_, IsBefore);
  }

  std::vector<Leaf> Sorted() && {
    std::sort_heap(heap_.begin(), heap_.end(), IsBefore);
    return std::move(heap_);
  }

 private:
  std::size_t wanted_;
  std::vector<Leaf> heap_;  // heap with the least on top
};

// Returns log(1 - exp(x)) for x <= 0.
double LogOneMinusExp(double x) {
  return x > -std::log(2.0) ? std::log(-std::expm1(x))
                            : std::log1p(-std::exp(x));
}

// Returns the `wanted` greatest of all, greatest first.
std::vector<Perturbed> Greatest(std::span<const double> log_weights, double max,
                                std::span<const double> exps,
                                std::span<const std::uint64_t> noise_keys,
                                std::size_t wanted, std::uint64_t seed) {
  GreatestPerturbed<double> greatest(log_weights, max, exps, noise_keys, wanted,
                                     seed);
  greatest.Offer(0, log_weights.size());
  return std::move(greatest).Sorted();
}

// Offers the items of a group with this log mass, whose greatest perturbed log
// weight is `greatest`.
void OfferItems(const OpenGroup& opened, std::size_t position, double log_mass,
                double greatest, std::uint64_t seed, BestLeaves& best) {
  // The items' own perturbed shares, as if the group were alone.
  const Perturbed own_greatest = Greatest(opened.log_shares, 0, opened.shares,
                                          opened.noise_keys, 1, seed)[0];
  // The value that the greatest of them must have.
  const double wanted = greatest - log_mass;
  // With x = exp(-perturbed), which are exponential variables, the shift is
  //   x' = x - exp(-own greatest) + exp(-wanted),
  // as the remainder of an exponential wait is exponential again. As in
  // GreatestPerturbed, x is greater than UniformFrom(bits) over the share, and
  // the slack is above all rounding.
  constexpr double kSlack = 1 + 1e-9;
  const double moved =
      std::exp(-own_greatest.log_weight) * kSlack - std::exp(-wanted);
  double threshold = best.threshold();
  double limit = (std::exp(log_mass - threshold) + moved) * kSlack;
  for (std::size_t i = 0; i < opened.shares.size(); ++i) {
    const std::uint64_t bits = RandomBits(seed, opened.noise_keys[i]);
    if (UniformFrom(bits) > opened.shares[i] * limit) continue;
    double perturbed = greatest;
    if (i != own_greatest.index) {
      const double own = opened.log_shares[i] + GumbelFrom(bits);
      // The shift in logs, where nothing underflows (Kool et al. 2019, app. B).
      const double v =
          wanted - own + LogOneMinusExp(own - own_greatest.log_weight);
      perturbed = log_mass + (wanted - std::max(0.0, v) -
                              std::log1p(std::exp(-std::abs(v))));
    }
    best.Offer({.perturbed = perturbed,
                .opened = position,
                .item = i,
                .log_weight = log_mass + opened.log_shares[i],
                .noise_key = opened.noise_keys[i]});
    if (best.threshold() == threshold) continue;
    threshold = best.threshold();
    limit = (std::exp(log_mass - threshold) + moved) * kSlack;
  }
}

// Returns the log of the mass left: groups that were neither drawn nor opened,
// and the remaining items of opened groups, where the shares of drawn items are
// 0. Sums logs where exps may have underflowed.
double LogPartitionOfRest(std::span<const double> log_masses,
                          const Masses& masses,
                          const std::vector<bool>& is_open,
                          std::span<const OpenGroup> opened) {
  double sum = 0;
  for (std::size_t g = 0; g < masses.exps.size(); ++g) {
    if (!is_open[g]) sum += masses.exps[g];
  }
  for (const OpenGroup& group : opened) {
    double shares = 0;
    for (const double share : group.shares) shares += share;
    sum += masses.exps[group.group] * shares;
  }
  if (sum > kMinExp) return std::log(sum);
  std::vector<double> rest;
  for (std::size_t g = 0; g < masses.exps.size(); ++g) {
    if (!is_open[g]) rest.push_back(log_masses[g] - masses.max);
  }
  for (const OpenGroup& group : opened) {
    for (const double log_share : group.log_shares) {
      if (log_share == kMinusInfinity) continue;
      rest.push_back(log_masses[group.group] - masses.max + log_share);
    }
  }
  if (rest.empty()) return kMinusInfinity;
  const double max = *std::ranges::max_element(rest);
  sum = 0;
  for (const double log_weight : rest) sum += std::exp(log_weight - max);
  return max + std::log(sum);
}

}  // namespace

absl::StatusOr<GroupSlate> SampleGroupsWithReplacement(ItemGroups& groups,
                                                       std::int64_t count,
                                                       std::uint64_t seed) {
  GroupSlate drawn;
  const std::span<const double> log_masses = groups.log_masses();
  if (log_masses.empty()) return drawn;
  const Masses masses(log_masses);
  std::vector<double> sums(masses.exps.size());
  std::partial_sum(masses.exps.begin(), masses.exps.end(), sums.begin());
  const double log_sum = std::log(sums.back());
  drawn.log_mass = masses.max + log_sum;

  struct Target {
    double place = 0;
    std::size_t draw = 0;
  };
  const auto draw_count = static_cast<std::size_t>(count);
  std::vector<Target> targets(draw_count);
  for (std::size_t d = 0; d < draw_count; ++d) {
    targets[d] = {sums.back() * UniformFrom(RandomBits(seed, d)), d};
  }
  // In ascending order, draws from one group are adjacent.
  std::ranges::sort(targets, [](const Target& a, const Target& b) {
    return a.place < b.place;
  });
  drawn.slate.draws.resize(draw_count);
  drawn.items.resize(draw_count);
  OpenGroup opened;
  std::vector<double> share_sums;
  for (std::size_t t = 0; t < draw_count; ++t) {
    // A place may round up to the whole sum and so select a mass of 0.
    const auto above =
        std::upper_bound(sums.begin(), sums.end(), targets[t].place);
    const auto g = static_cast<std::size_t>(
        (above == sums.end()
             ? std::lower_bound(sums.begin(), sums.end(), sums.back())
             : above) -
        sums.begin());
    if (t == 0 || g != opened.group) {
      ATTENDANT_ASSIGN_OR_RETURN(opened, OpenUp(groups, g));
      share_sums.resize(opened.shares.size());
      std::partial_sum(opened.shares.begin(), opened.shares.end(),
                       share_sums.begin());
    }
    const std::size_t d = targets[t].draw;
    const double place =
        share_sums.back() * UniformFrom(RandomBits(seed ^ kWithinGroup, d));
    const auto above_item =
        std::upper_bound(share_sums.begin(), share_sums.end(), place);
    const auto item = static_cast<std::size_t>(
        (above_item == share_sums.end()
             ? std::lower_bound(share_sums.begin(), share_sums.end(),
                                share_sums.back())
             : above_item) -
        share_sums.begin());
    drawn.slate.draws[d].index = static_cast<std::int64_t>(g);
    drawn.slate.draws[d].log_weight =
        log_masses[g] - masses.max - log_sum + opened.log_shares[item];
    drawn.items[d] = static_cast<std::int64_t>(item);
  }
  for (const Draw& draw : drawn.slate.draws) {
    drawn.slate.log_probability += draw.log_weight;
  }
  return drawn;
}

absl::StatusOr<GroupSlate> SampleGroupsWithoutReplacement(ItemGroups& groups,
                                                          std::int64_t count,
                                                          std::uint64_t seed) {
  GroupSlate drawn;
  const std::span<const double> log_masses = groups.log_masses();
  if (log_masses.empty()) return drawn;
  const Masses masses(log_masses);
  const std::int64_t item_count =
      std::accumulate(groups.item_counts().begin(), groups.item_counts().end(),
                      std::int64_t{0});
  const auto draw_count = static_cast<std::size_t>(std::min(count, item_count));
  const bool leaves_some = count < item_count;
  const std::size_t wanted = draw_count + (leaves_some ? 1 : 0);

  // A group's greatest perturbed log weight is that of an item, so a group that
  // is not among the `wanted` best has no item that is.
  const std::vector<Perturbed> best_groups =
      Greatest(log_masses, masses.max, masses.exps, groups.noise_keys(),
               std::min(wanted, log_masses.size()), seed);
  BestLeaves best(wanted);
  std::vector<OpenGroup> opened;
  std::vector<bool> is_open(log_masses.size());
  for (const Perturbed& group : best_groups) {
    if (group.log_weight < best.threshold()) break;
    const std::size_t g = group.index;
    ATTENDANT_ASSIGN_OR_RETURN(OpenGroup open, OpenUp(groups, g));
    is_open[g] = true;
    OfferItems(open, opened.size(), log_masses[g] - masses.max,
               group.log_weight, seed, best);
    opened.push_back(std::move(open));
  }
  std::vector<Leaf> leaves = std::move(best).Sorted();
  std::optional<double> threshold;
  if (leaves_some) {
    threshold = leaves.back().perturbed;
    leaves.pop_back();
  }
  for (const Leaf& leaf : leaves) {
    opened[leaf.opened].shares[leaf.item] = 0;
    opened[leaf.opened].log_shares[leaf.item] = kMinusInfinity;
  }
  drawn.slate.draws.resize(draw_count);
  drawn.items.resize(draw_count);
  std::vector<double> log_weights(draw_count);
  for (std::size_t d = 0; d < draw_count; ++d) {
    const Leaf& leaf = leaves[d];
    drawn.slate.draws[d].index =
        static_cast<std::int64_t>(opened[leaf.opened].group);
    drawn.items[d] = static_cast<std::int64_t>(leaf.item);
    log_weights[d] = leaf.log_weight;
  }
  const double log_all = SetProbabilities(
      log_weights, LogPartitionOfRest(log_masses, masses, is_open, opened),
      threshold, drawn.slate);
  drawn.log_mass = masses.max + log_all;
  return drawn;
}

}  // namespace attendant
