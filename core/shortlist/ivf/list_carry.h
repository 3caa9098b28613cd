// What the scan of a query in one index finds out for those in others of the
// same training. Internal.
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

// The lists are those of the training, so they are chosen once; and the mass of
// those that were not visited is guessed once, from draws among all indexes.
class ListCarry final : public ScanCarry {
 public:
  // The one that `carry` holds, which is made if there is none yet. Null if
  // there is none, or if it is of another training.
  static ListCarry* Of(std::unique_ptr<ScanCarry>* carry,
                       const IvfTraining& training);
  // The same, but none is made.
  static ListCarry* Find(const std::unique_ptr<ScanCarry>& carry,
                         const IvfTraining& training);

  explicit ListCarry(const IvfTraining& training) : training_(training) {}

  bool has_choice() const { return !lists_.empty(); }
  std::span<const std::int32_t> lists() const { return lists_; }
  // The query's code, once there is a choice; else null.
  const CodedQuery* coded() const { return has_choice() ? &coded_ : nullptr; }
  // What the choice was made for.
  std::int64_t probe_count() const { return probe_count_; }
  // Keeps what a visit chose for so many lists, and lets another visit have it,
  // whose pass is that of the same query.
  void Keep(const ListVisit& visit, std::int64_t probe_count);
  void ChooseFor(ListVisit& visit) const;

  // Notes that the visit has taken all of its lists' eligible keys. Masked:
  // only some of the index's keys are eligible.
  // `square_distance`: of the keys from their lists' means, in the mean.
  void Add(const InvertedLists& lists, const ListVisit& visit, bool masked,
           std::int64_t eligible_count, double square_distance);

  // Eligible keys of the InvertedLists that were added.
  std::int64_t eligible_count() const { return eligible_count_; }

  // Notes that of rows which lie in no InvertedLists the eligible ones in the
  // chosen lists were taken; see GrowingPart and UnscoredMass::Guess. `query`
  // is the one in their index.
  void AddGrowing(std::span<const std::int32_t> list_of, const ScanQuery& query,
                  std::int64_t eligible_count, std::int64_t taken_count);
  // Eligible rows of those.
  std::int64_t growing_count() const { return growing_count_; }

  void Finish(AttentionState& state, ScanStats& stats) override;

 private:
  struct Part {
    const InvertedLists* lists = nullptr;
    std::optional<EligibleRows> eligible;
  };

  const IvfTraining& training_;
  CodedQuery coded_;
  std::span<const float> query_;
  const KnownMasses* known_masses_ = nullptr;
  double logit_factor_ = 1;
  std::vector<std::int32_t> lists_;
  std::int64_t probe_count_ = 0;
  std::vector<float> list_logits_;  // of their means
  std::vector<float> scores_;       // of all lists
  float farther_score_ = 0;
  std::vector<Part> parts_;
  // Over the parts.
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
