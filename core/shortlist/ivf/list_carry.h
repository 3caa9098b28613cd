// State that the scan of a query in one index leaves for its scans in other
// indexes of the same training. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_IVF_LIST_CARRY_H_
#define ATTENDANT_CORE_SHORTLIST_IVF_LIST_CARRY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/attention/softmax/state.h"
#include "core/base/minus_infinity.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "core/shortlist/keys/coded_query.h"
#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/mass/unscored_mass.h"
#include "core/shortlist/passes/code_scan.h"
#include "core/shortlist/scan/eligible_rows.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// The lists are those of the training, so they are chosen only once; and the
// mass of the lists that were not visited is guessed only once, from draws
// among all indexes.
class ListCarry final : public ScanCarry {
 public:
  // Returns the ListCarry in `carry`, creating one if `carry` is empty. Null if
  // `carry` is null, or holds one of another training.
  static ListCarry* Of(std::unique_ptr<ScanCarry>* carry,
                       const IvfTraining& training);
  // As Of, but never creates one.
  static ListCarry* Find(const std::unique_ptr<ScanCarry>& carry,
                         const IvfTraining& training);

  explicit ListCarry(const IvfTraining& training) : training_(training) {}

  bool has_choice() const { return !lists_.empty(); }
  std::span<const std::int32_t> lists() const { return lists_; }
  // The coded query once there is a choice; otherwise null.
  const CodedQuery* coded() const { return has_choice() ? &coded_ : nullptr; }
  // The number of lists that the choice was made for.
  std::int64_t probe_count() const { return probe_count_; }
  // Keep stores what `visit` chose for probe_count lists; ChooseFor gives that
  // choice to another visit, whose pass must be of the same query.
  void Keep(const ListVisit& visit, std::int64_t probe_count);
  void ChooseFor(ListVisit& visit) const;

  // Records that the visit has taken all eligible keys of its lists. masked:
  // only some of the index's keys are eligible. square_distance: mean square
  // distance of the keys from their lists' means.
  void Add(const InvertedLists& lists, const ListVisit& visit, bool masked,
           std::int64_t eligible_count, double square_distance);

  // Number of eligible keys in the InvertedLists that were added.
  std::int64_t eligible_count() const { return eligible_count_; }

  // Records that the eligible rows in the chosen lists were taken, for rows
  // that lie in no InvertedLists; see GrowingPart and UnscoredMass::Guess.
  // `query` is the query in the index of those rows.
  void AddGrowing(std::span<const std::int32_t> list_of, const ScanQuery& query,
                  std::int64_t eligible_count, std::int64_t taken_count);
  // Number of eligible rows that were added by AddGrowing.
  std::int64_t growing_count() const { return growing_count_; }

  void Finish(AttentionState& state, ScanStats& stats) override;

 private:
  struct Part {
    const InvertedLists* lists = nullptr;
    std::optional<EligibleRows> eligible;
    const DeadKeys* dead = nullptr;
  };

  const IvfTraining& training_;
  CodedQuery coded_;
  std::span<const float> query_;
  const KnownMasses* known_masses_ = nullptr;
  double logit_factor_ = 1;
  std::vector<std::int32_t> lists_;
  std::int64_t probe_count_ = 0;
  bool keeps_all_ = false;          // as CodePass
  std::vector<float> list_logits_;  // of the lists' means
  std::vector<float> scores_;       // of all lists
  float farther_score_ = 0;
  std::vector<Part> parts_;
  // Totals over the parts.
  std::int64_t key_count_ = 0;
  double square_distance_sum_ = 0;
  std::int64_t eligible_count_ = 0;
  std::int64_t taken_count_ = 0;
  std::vector<GrowingPart> growing_;
  std::int64_t growing_count_ = 0;
  double log_sum_ = kMinusInfinity;
  double log_farther_sum_ = kMinusInfinity;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_IVF_LIST_CARRY_H_
