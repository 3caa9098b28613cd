// A distribution over a segment's keys that is near to their softmax, and known
// as a whole without scoring every key.
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
  std::int64_t id = 0;         // the same for a query of the same index
};

// One query's groups of the eligible keys of a segment, but for those whose
// logits were known before, the head. A key weighs its group's mass times its
// share of the group; what weights lack of exp(logit) is told below, of all
// keys together. The same bytes for the same query. Not thread-safe.
class KeyGroups {
 public:
  virtual ~KeyGroups() = default;

  virtual std::span<const KeyGroup> groups() const = 0;

  // Overwrites both with the keys of a group, always the same and in the same
  // order: their rows, and the logs of their shares, finite, but for a constant
  // of the group.
  virtual void Open(std::size_t group, std::vector<RowIndex>& rows,
                    std::vector<float>& log_shares) = 0;

  // Log of how much more than their groups' masses the keys' exp(logit) may sum
  // to, at most, for 97.5 % of queries; -infinity is nothing.
  virtual double log_shortfall() const = 0;

  // The sum over keys, for 95 % of queries at most, of what their weights are
  // above exp(logit) / growth, where they are. growth >= 1. As a log.
  virtual double LogExcess(double growth) const = 0;

  // Keys scored so far, by codes.
  virtual std::int64_t scored_count() const = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SCAN_KEY_GROUPS_H_
