// Lists that a proof need not read: none of the best keys is in them, and
// hardly any mass. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_MASS_FAR_LISTS_H_
#define ATTENDANT_CORE_SHORTLIST_MASS_FAR_LISTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/shortlist/mass/unscored_mass.h"

namespace attendant {

struct FarLists {
  std::vector<std::int32_t> lists;  // ascending
  UnscoredGuess guess;              // of the mass of their eligible keys

  bool empty() const { return lists.empty(); }
  void Clear() {
    lists.clear();
    guess = UnscoredGuess();
  }
};

// Of what is known already, the share that far lists may hold. docs/mass.md
// says what that does to the partition.
inline constexpr double kMaxFarShare = 1.0 / 2000;

// What is known of a query's logits.
struct LogitReach {
  std::span<const float> of_means;  // logits of the lists' means
  // A logit exceeds that of its list's mean by at most the norm of the
  // difference between key and mean times `per_norm`, plus `rounding`.
  double per_norm = 0;
  double rounding = 0;
  // At least as many keys as are wanted have this logit or a greater one.
  double least_of_best = 0;
  // Far lists may hold at most this share of exp(visited.log_sum), together and
  // in any single key.
  double max_share = kMaxFarShare;
};

// Finds lists whose greatest possible logit is below least_of_best, and whose
// keys are predicted to hold no more than they may. Visited lists are not among
// them. Finds none if the keys are distributed otherwise than those that the
// prediction was learned from. `part` must not be masked. Thread-safe.
void FindFarLists(const UnscoredMass& mass, const ListPart& part,
                  const VisitedMass& visited, const LogitReach& reach,
                  FarLists& far);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_MASS_FAR_LISTS_H_
