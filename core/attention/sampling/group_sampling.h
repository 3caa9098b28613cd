// Draws items in proportion to weights that are known of whole groups, and of
// the items of a group only once it is opened: few groups are.
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
  // Finite. An item's share of its group's mass is exp of this over their sum.
  std::vector<float> log_weights;
  // What an item's noise depends on beside the seed.
  std::vector<std::uint64_t> noise_keys;
};

// n groups, each of at least one item. An item's probability is its group's
// share of all mass times its own share of its group's.
class ItemGroups {
 public:
  virtual ~ItemGroups() = default;

  virtual std::span<const double> log_masses() const = 0;         // [n], finite
  virtual std::span<const std::int64_t> item_counts() const = 0;  // [n], >= 1
  // [n], of the group: an item that is the only one of its group has its noise
  // from here.
  virtual std::span<const std::uint64_t> noise_keys() const = 0;
  // Overwrites `items` with those of a group of several, item_counts of them,
  // always the same. Errors end the draw.
  virtual absl::Status Open(std::size_t group, GroupItems& items) = 0;
};

// A slate whose draws' indices are groups.
struct GroupSlate {
  Slate slate;
  std::vector<std::int64_t> items;  // of each draw, within its group
  // Log of the sum of all masses; -infinity of none.
  double log_mass = kMinusInfinity;
};

// Both have the errors of Open, and hold no state.

// `count` >= 0 independent draws; none if there are no groups. Opens the groups
// that are drawn from.
absl::StatusOr<GroupSlate> SampleGroupsWithReplacement(ItemGroups& groups,
                                                       std::int64_t count,
                                                       std::uint64_t seed);

// min(count, items) draws without replacement: as SampleWithoutReplacement of
// all items, but that noise is drawn from the top (Kool et al. 2019, sec. 3 and
// app. B; Maddison, Tarlow, Minka 2014). The greatest perturbed log weight of a
// group is its log mass plus one Gumbel variable; given that, those of its
// items are their own Gumbel variables, moved so that the greatest agrees. At
// most count + 1 groups are opened: those of which some item may be among the
// first count + 1. A smaller count draws a prefix.
absl::StatusOr<GroupSlate> SampleGroupsWithoutReplacement(ItemGroups& groups,
                                                          std::int64_t count,
                                                          std::uint64_t seed);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SAMPLING_GROUP_SAMPLING_H_
