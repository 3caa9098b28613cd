// Inverted lists as groups to draw keys from: near lists by their codes, the
// others by their predicted mass. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_MASS_LIST_GROUPS_H_
#define ATTENDANT_CORE_SHORTLIST_MASS_LIST_GROUPS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/attention/softmax/score.h"
#include "core/shortlist/keys/coded_query.h"
#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/mass/unscored_mass.h"
#include "core/shortlist/scan/eligible_rows.h"
#include "core/shortlist/scan/key_groups.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// A key whose logit is known; it is in no group.
struct KnownKey {
  std::int32_t position = 0;
  float logit = 0;
};

struct ListGroupsInput {
  const InvertedLists* lists = nullptr;  // their codes must be usable
  std::shared_ptr<const UnscoredMass> unscored_mass;  // usable, of these lists
  const ScanQuery* query = nullptr;
  bool masked = false;           // some keys are not eligible
  std::int64_t probe_count = 1;  // lists that the query visits
  // The number of keys in `lists` as a share of those that the mass was learned
  // from.
  double key_share = 1;
  std::vector<KnownKey> known;  // eligible keys, by position
  // [lists], number of eligible keys, including the known ones.
  std::vector<std::int64_t> eligible_counts;
};

// Lists are treated in three ways:
// - The lists that the query visits, those of known keys, and those with the
//   greatest predicted mass are scored by their codes. Their weight is the sum
//   of exp(logit) by code.
// - Of the other lists kDraws are drawn in proportion to M^kTemper, where M is
//   a list's predicted mass (see UnscoredMass), and scored too.
// - Each remaining list weighs M, times the mean ratio of the drawn lists' sums
//   to their M, times the share of its keys that is eligible. Its codes are
//   read only when something is drawn from it.
//
// Within a list, keys are drawn by their codes of 8 bits.
//
// The distance from the softmax is estimated from three sources: the drawn
// lists, whose ratios are a sample of those of the rest; the errors of codes,
// taken as normal; and how much lists that were not visited may hold beyond
// what was drawn, as learned by UnscoredMass.
class ListGroups : public KeyGroups {
 public:
  // Lists that are scored for their predicted mass, in addition to those
  // visited; at most a quarter of all.
  static constexpr std::int64_t kMost = 64;
  // kMost, limited to a quarter of list_count lists.
  static constexpr std::int64_t MostOf(std::int64_t list_count) {
    return std::min(kMost, (list_count + 3) / 4);
  }
  // Lists drawn among the others, which show how good the predictions are.
  static constexpr std::int64_t kDraws = 32;

  // Returns null if codes say too little of this query's logits. Everything
  // that the input points to must outlive the result.
  static std::unique_ptr<ListGroups> Make(ListGroupsInput input);

  std::span<const KeyGroup> groups() const override { return groups_; }
  void Open(std::size_t group, std::vector<RowIndex>& rows,
            std::vector<float>& log_shares) override;
  double log_shortfall() const override { return log_shortfall_; }
  double LogExcess(double growth) const override;
  std::int64_t scored_count() const override { return scored_count_; }

 private:
  // A list whose codes were all scored.
  struct ScoredList {
    std::int64_t list = 0;
    std::size_t begin = 0;  // its keys are [begin, end) of rows_ and logits_
    std::size_t end = 0;
    double log_sum = 0;  // of exp(logit); -infinity without keys
    // Variance of the error of a logit, weighted as the keys are.
    double variance = 0;
  };
  // A list that was drawn and represents others.
  struct DrawnList {
    double weight = 0;  // predicted mass of the lists it represents
    double ratio = 0;   // of its sum to its prediction
    double variance = 0;
  };
  struct Mean {
    double value = 0;
    double deviation = 0;  // of the mean
  };

  explicit ListGroups(ListGroupsInput input)
      : input_(std::move(input)), eligible_(*input_.query) {}

  bool Start();
  std::vector<std::int32_t> ChooseLists();
  std::span<const KnownKey> KnownOf(std::int64_t list) const;
  // Appends the eligible keys of a list that are not known, and sets
  // square_scales_ to theirs.
  void ScoreList(std::int64_t list, std::vector<RowIndex>& rows,
                 std::vector<float>& logits);
  // Removes, from index `first` on, the keys that are not eligible or are
  // known.
  void LeaveOut(std::int64_t list, std::size_t first,
                std::vector<RowIndex>& rows, std::vector<float>& logits);
  const ScoredList& AddScored(std::int64_t list);
  // Returns the mass of the visited lists, which are all that is scored so far.
  VisitedMass Visited(std::span<const std::int32_t> visited) const;
  // Draws lists. Sets log_predicted of each list that is scored to -infinity.
  void DrawLists(std::vector<float>& log_predicted);
  void AddDrawn(std::int64_t list, double probability, float log_predicted);
  // Returns the mean of function(drawn list) over the lists they represent.
  template <typename Function>
  Mean MeanOfDrawn(Function function) const;
  void Calibrate(std::span<const float> log_predicted);
  // Returns false if some mass is not finite.
  bool MakeGroups(std::span<const float> log_predicted);

  const ListGroupsInput input_;
  const EligibleRows eligible_;
  CodedQuery coded_;
  double variance_per_square_scale_ = 0;
  std::vector<float> scores_;  // of all lists
  std::vector<ScoredList> scored_;
  std::vector<std::int32_t> scored_of_list_;  // by list; -1: not scored
  std::vector<RowIndex> rows_;
  std::vector<float> logits_;
  std::vector<DrawnList> drawn_;
  float max_predicted_ = 0;  // at the time of drawing
  double log_unseen_ = 0;    // of the deviation that no draw shows
  double mean_ratio_ = 1;    // of drawn lists
  double log_rest_ = 0;      // mass of the lists that were not scored
  double log_shortfall_ = 0;
  std::vector<KeyGroup> groups_;
  std::int64_t scored_count_ = 0;
  // Scratch.
  std::vector<float> block_logits_;
  std::vector<float> square_scales_;
  std::vector<float> exps_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_MASS_LIST_GROUPS_H_
