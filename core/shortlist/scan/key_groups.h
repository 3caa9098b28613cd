// KeyGroups: a distribution over a segment's keys that is close to their
// softmax, and is known as a whole without scoring every key.
#ifndef ATTENDANT_CORE_SHORTLIST_SCAN_KEY_GROUPS_H_
#define ATTENDANT_CORE_SHORTLIST_SCAN_KEY_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"

namespace attendant {

struct KeyGroup {
  double log_mass = 0;         // finite
  std::int64_t key_count = 0;  // eligible keys; >= 1
  std::int64_t id = 0;  // identifies the group to queries of the same index
};

// One query's groups of the eligible keys of a segment, without the head: the
// keys whose logits were known before. A key's weight is its group's mass times
// its share of the group. The error of the weights against exp(logit) is
// bounded below for all keys together. The same query gives the same bytes. Not
// thread-safe.
class KeyGroups {
 public:
  virtual ~KeyGroups() = default;

  virtual std::span<const KeyGroup> groups() const = 0;

  // Overwrites `rows` and `log_shares` with the keys of `group`, always the
  // same and in the same order. The logs of their shares are finite, and are
  // given up to a constant of the group.
  virtual void Open(std::size_t group, std::vector<RowIndex>& rows,
                    std::vector<float>& log_shares) = 0;

  // Log of an upper bound, held by 97.5 % of queries, of how much the keys'
  // exp(logit) sum to beyond their groups' masses; -infinity: nothing.
  virtual double log_shortfall() const = 0;

  // Log of an upper bound, held by 95 % of queries, of the sum over keys of
  // max(0, weight - exp(logit) / growth). growth >= 1.
  virtual double LogExcess(double growth) const = 0;

  // Keys scored so far, from codes.
  virtual std::int64_t scored_count() const = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SCAN_KEY_GROUPS_H_
