// Draws items in proportion to their weights. The weights of whole groups are
// known at once; those of items only once their group is opened, which happens
// to few groups.
#ifndef ATTENDANT_CORE_ATTENTION_SAMPLING_GROUP_SAMPLING_H_
#define ATTENDANT_CORE_ATTENTION_SAMPLING_GROUP_SAMPLING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/sampling/sampling.h"
#include "core/base/minus_infinity.h"

namespace attendant {

// The items of a group, column by column.
struct GroupItems {
  // Finite. An item's share of its group's mass is exp(log_weight) over the sum
  // of these in the group.
  std::vector<float> log_weights;
  // What an item's noise depends on in addition to the seed.
  std::vector<std::uint64_t> noise_keys;
};

// n groups, each of at least one item. An item's probability is its group's
// share of the total mass times the item's share of the group's mass.
class ItemGroups {
 public:
  virtual ~ItemGroups() = default;

  virtual std::span<const double> log_masses() const = 0;         // [n], finite
  virtual std::span<const std::int64_t> item_counts() const = 0;  // [n], >= 1
  // [n]. The noise keys of groups; an item alone in its group takes its noise
  // from here.
  virtual std::span<const std::uint64_t> noise_keys() const = 0;
  // Overwrites `items` with the item_counts items of a group of several, always
  // the same ones. An error ends the draw.
  virtual absl::Status Open(std::size_t group, GroupItems& items) = 0;
};

// A slate in which the indices of draws are groups.
struct GroupSlate {
  Slate slate;
  std::vector<std::int64_t> items;  // of each draw, within its group
  // Log of the sum of all masses; -infinity if there are no groups.
  double log_mass = kMinusInfinity;
};

// Both functions return the errors of Open, and hold no state.

// Makes `count` >= 0 independent draws; none if there are no groups. Opens the
// groups that are drawn.
absl::StatusOr<GroupSlate> SampleGroupsWithReplacement(ItemGroups& groups,
                                                       std::int64_t count,
                                                       std::uint64_t seed);

// Makes min(count, items) draws without replacement. As
// SampleWithoutReplacement of all items, but noise is drawn top down (Kool et
// al. 2019, sec. 3 and app. B; Maddison, Tarlow, Minka 2014). The greatest
// perturbed log weight of a group is its log mass plus one Gumbel variable;
// given that, the perturbed log weights of its items use Gumbel variables of
// their own, shifted so that the greatest agrees. Opens at most count + 1
// groups: those that may hold one of the first count + 1 items. A smaller count
// draws a prefix.
absl::StatusOr<GroupSlate> SampleGroupsWithoutReplacement(ItemGroups& groups,
                                                          std::int64_t count,
                                                          std::uint64_t seed);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SAMPLING_GROUP_SAMPLING_H_
