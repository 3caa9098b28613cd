// Scans of inverted lists: which lists are visited, from codes or from floats,
// and what the scan then knows. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_IVF_LIST_INDEX_H_
#define ATTENDANT_CORE_SHORTLIST_IVF_LIST_INDEX_H_

#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/softmax/score.h"
#include "core/base/bitmap.h"
#include "core/shortlist/calibration/calibrate.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "core/shortlist/ivf/list_carry.h"
#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/lists/list_values.h"
#include "core/shortlist/mass/unscored_mass.h"
#include "core/shortlist/passes/code_pass.h"
#include "core/shortlist/passes/code_scan.h"
#include "core/shortlist/passes/float_visit.h"
#include "core/shortlist/scan/eligible_rows.h"
#include "core/shortlist/scan/row_scan.h"

namespace attendant {

class ListScratch;

class ListIndex : public IvfIndex {
 public:
  // The keys in `lists` are those of rows in [0, row_count). The lists' means
  // must be the training's. Values that are not the keys are pooled from codes
  // if `values` is given.
  ListIndex(InvertedLists lists, std::int64_t row_count,
            std::shared_ptr<const IvfTraining> training,
            std::optional<ListValues> values = std::nullopt);

  IndexKind kind() const override { return IndexKind::kIvf; }
  std::int64_t dim() const override { return lists_.dim; }
  std::int64_t list_count() const override { return lists_.list_count(); }
  std::int64_t probe_count() const override {
    return training_->calibration.probe_count;
  }
  double measured_recall() const override {
    return training_->calibration.recall;
  }
  const std::shared_ptr<const IvfTraining>& training() const override {
    return training_;
  }
  std::int32_t ListOf(RowIndex row) const override;
  std::unique_ptr<DeadKeys> NoneDead() const override;
  void Kill(RowIndex row, DeadKeys& dead) const override;
  double square_distance() const override { return square_distance_; }
  double trained_square_distance() const override {
    return training_->square_distance;
  }
  std::int64_t trained_key_count() const override {
    return training_->key_count;
  }
  std::span<const float> Key(RowIndex row) const override;
  std::uint64_t Keyed(std::int64_t w, std::uint64_t rows) const override {
    // All bits past the last row are clear.
    return rows == 0 ? 0 : rows & keyed_.words()[w];
  }
  float inverse_norm(RowIndex row) const override {
    const std::int32_t position = positions_[row];
    return position < 0 ? std::numeric_limits<float>::quiet_NaN()
                        : lists_.inverse_norms[position];
  }
  double max_norm() const override { return lists_.max_norm(); }
  absl::StatusOr<ScanStats> Scan(const ScanQuery& query,
                                 AttentionState& state) const override;
  void ScanTogether(std::span<ScanTask> tasks) const override;
  std::unique_ptr<KeyGroups> GroupKeys(
      const ScanQuery& query, std::span<const Candidate> known) const override;
  std::int64_t learning_bytes() const override;
  absl::StatusOr<bool> Learn(const std::atomic<bool>& cancelled) const override;
  MemoryParts memory() const override;

  const InvertedLists& lists() const { return lists_; }
  // Codes of values that are not keys; null if there are none.
  const ListValues* values() const { return values_ ? &*values_ : nullptr; }
  // False if codes do not give the query's logits, because of its score or
  // biases, or if what the state pools has no codes.
  bool HasCodesFor(const ScanQuery& query, const AttentionState& state) const {
    return HasCodesFor(query) &&
           (state.value_dim() == 0 || ValuesOf(query, state) != nullptr);
  }
  // Number of rows, with or without a key.
  std::int64_t row_count() const { return keyed_.size(); }

 private:
  // A pass over all codes takes this many keys for each that it may keep; with
  // fewer, it would score most keys from floats anyway. A pass over a few lists
  // also saves the ranking of all lists by floats.
  static constexpr std::int64_t kKeysPerKept = 4;
  // This many bytes of codes are read about as quickly as half of them with
  // more draws and a thousand keys' floats, and say more (docs/mass.md). The
  // limit is lower if values are pooled, since their codes are read as well.
  static constexpr std::int64_t kFewCodes = std::int64_t{1} << 24;
  static constexpr std::int64_t kFewPooledCodes = std::int64_t{1} << 22;
  // For a sum to a precision, this many floats are read as quickly as their
  // codes with the draws that correct them, and are exact. They fit a
  // second-level cache.
  static constexpr std::int64_t kCachedFloats = std::int64_t{1} << 18;
  // With fewer dimensions the errors of codes are alike instead of random, so
  // that nothing is known of their sum; and the floats of a key are few.
  static constexpr std::int64_t kMinCodedDim = 3;
  // Keys scored from floats, in addition to the k best, if the sum must be
  // accurate, unless 8 bits of few keys are read: these attend most, so their
  // codes' errors do not matter.
  static constexpr std::int64_t kRescoreCount = 1000;

  // The lists that a query visits. With a margin: those whose scores are at
  // most it below the score expected of the best sought_count keys, and at
  // least as many lists as hold key_count keys of the training. Without a
  // margin: probe_count lists. With both (`deep`): probe_count lists, and
  // unless the query is near keys, those of the margin as well.
  struct ListChoice {
    std::optional<QueryMargin> margin;
    double sought_count = 0;
    double key_count = 0;
    std::int64_t probe_count = 0;
    bool deep = false;
  };

  // The way a query is scanned that sees all or most keys.
  struct Route {
    bool by_code = false;
    bool complete = false;  // all lists are scanned
    // Otherwise the lists to visit: by margin, about probe_count of them, or
    // exactly probe_count if there is no margin. `deep`: more keys are wanted
    // than margins were learned for, see ListChoice.
    std::optional<QueryMargin> margin;
    std::int64_t probe_count = 0;
    bool deep = false;
    // The wanted recall exceeds that which numbers of lists are learned for.
    bool above_target = false;
    // For a proof: lists read first, with 8 bits. The others are read with 4 if
    // those may be read, and not at all where none of the best can be. 0: all
    // lists are read with 8.
    std::int64_t near_list_count = 0;
    double eligible_rate = 1;
    ListCarry* carry = nullptr;  // null: shares nothing with other indexes
    CodePassOptions options;

    bool masked() const { return eligible_rate < 1; }
  };
  // The choice of lists for the k best keys.
  ListChoice ChoiceOf(const Route& route, std::int64_t k) const;
  // Returns the score expected of the last of the best sought_count keys.
  float ExpectedScore(std::span<const float> scores,
                      const ListChoice& choice) const;
  // Returns the least score of a list that is visited. Requires a margin.
  float LeastScore(std::span<const float> scores, const ListChoice& choice,
                   float peak) const;
  // Sets `lists` to those with scores >= `least`, and more if they hold too few
  // keys or, if the choice is deep, are fewer than `least_count`.
  void SelectByMargin(std::span<const float> scores, float least,
                      const ListChoice& choice, std::int64_t least_count,
                      std::vector<std::int32_t>& lists) const;
  // Returns the margin for more keys than margins were learned for.
  static std::optional<QueryMargin> DeepMarginOf(const Route& route);
  // Returns how many lists a masked query visits by its deep margin if a share
  // `rate` of the keys is eligible; 0 if the query is near keys, or has no
  // margin.
  double ProbesByMargin(std::span<const float> scores, const Route& route,
                        std::int64_t k, double rate) const;
  // Sets `lists` to those of `choice`, given exact scores.
  void ChooseByScores(std::span<const float> scores, const ListChoice& choice,
                      std::vector<std::int32_t>& lists) const;

  bool IsMasked(const ScanQuery& query) const;
  // Returns the share of the keys that is eligible, if it is known and large.
  std::optional<double> GreatRate(const ScanQuery& query) const;
  // False if the lists visited by a masked query hold too few eligible keys:
  // fewer than it wants, or a much smaller share than all lists.
  bool FoundEnough(const Route& route, const ListVisit& visit,
                   std::int64_t k) const;
  bool HasCodesFor(const ScanQuery& query) const;
  // Finds which of row_count() rows are eligible and have keys. Overwrites
  // their words of `eligible`, which may have more words, and returns how many
  // they are.
  std::int64_t FindEligible(const ScanQuery& query, Bitmap& eligible) const;
  // Returns the number of eligible keys of each list, eligible_count in all.
  std::vector<std::int64_t> CountEligible(const Bitmap& eligible,
                                          std::int64_t eligible_count) const;
  // Returns the codes of what the state pools; null if there are none.
  const ListValues* ValuesOf(const ScanQuery& query,
                             const AttentionState& state) const;
  std::int64_t ProbesOf(const ScanGoals& goals) const;
  // Number of keys that the list was learned from.
  double TrainedCount(std::int32_t list) const {
    return lists_.means->counts[list];
  }
  // Standard deviation of the scores that 4 bits of the means give a query of
  // norm 1.
  float ScoreDeviation() const {
    return 16 * lists_.means->codes.max_scale() / std::sqrt(12.0f);
  }
  // Chooses the route by the query's goals and by what it asks of the state.
  Route RouteFor(const ScanQuery& query, const AttentionState& state) const;
  // Parts of RouteFor.
  void RouteToLists(const ScanGoals& goals, std::int64_t k, Route& route) const;
  bool MayProve(const ScanQuery& query, const AttentionState& state,
                std::int64_t probe_count) const;
  void RouteThroughKeys(const ScanQuery& query, const AttentionState& state,
                        Route& route) const;
  struct Group;
  // Starts query i of a group: finishes it, or records how it continues.
  void AddToGroup(ScanTask& task, std::size_t i, ListScratch& scratch,
                  Group& group) const;
  // Finishes a query that continued by codes, or leaves it to ScanAllFloats.
  void FinishInGroup(ScanTask& task, std::size_t i, ListScratch& scratch,
                     Group& group) const;
  // Returns what the query shares with other indexes on this route; null if
  // nothing.
  ListCarry* CarryOf(const ScanTask& task, const Route& route) const;
  absl::StatusOr<ScanStats> FinishPass(const Route& route,
                                       const ListVisit& visit, CodePass& pass,
                                       const ScanQuery& query,
                                       AttentionState& state) const;
  // Returns near_list_count of a proof for the k best.
  std::int64_t NearListsFor(std::int64_t k) const;
  // Takes the nearest lists with 8 bits, finds the far ones, and then sets
  // passes to read 4 bits if they may.
  void TakeNearLists(std::span<ListVisit* const> visits,
                     std::span<const std::int64_t> list_counts) const;
  // Sets the visit's far lists, after it took the nearest.
  void FindFar(ListVisit& visit) const;
  // Adds what is known of them.
  void AddFar(const FarLists& far, AttentionState& state,
              ScanStats& stats) const;
  bool StartPass(const ScanQuery& query, std::int64_t k, bool all_eligible,
                 Route& route, CodePass& pass) const;
  // Adds to the state the guessed mass of the lists that were not visited.
  // eligible: null if all keys are.
  void AddUnscored(const ListVisit& visit, const EligibleRows* eligible,
                   std::int64_t eligible_count, AttentionState& state,
                   ScanStats& stats) const;
  void AddUnscored(const ScanQuery& query, const EligibleRows* eligible,
                   VisitedMass visited, AttentionState& state,
                   ScanStats& stats) const;
  // Returns the stats of a visit. If it was not of all lists (`complete`), also
  // adds the guessed mass of the others.
  ScanStats FinishFloats(const ScanQuery& query, const FloatVisit& visit,
                         bool complete, std::span<const float> scores,
                         const EligibleRows* eligible,
                         std::int64_t eligible_count,
                         AttentionState& state) const;
  void ChooseLists(std::span<ListVisit* const> visits,
                   std::span<const ListChoice> choices) const;
  void ChooseExactly(float* scores, const ListChoice& choice,
                     ListVisit& visit) const;
  absl::StatusOr<ScanStats> ScanFloats(const ScanQuery& query,
                                       AttentionState& state,
                                       const Route& route) const;
  // Scans every key of all lists from its floats.
  void ScanAllFloats(std::span<ScanTask* const> tasks) const;
  // Returns false if the query is left to ScanAllFloats.
  bool ScanMasked(ScanTask& task) const;
  absl::StatusOr<ScanStats> ScanMaskedRows(const ScanQuery& query,
                                           const Bitmap& eligible,
                                           AttentionState& state) const;
  absl::StatusOr<ScanStats> ScanMaskedFloats(const ScanQuery& query,
                                             std::int64_t eligible_count,
                                             const Route& route,
                                             AttentionState& state) const;
  absl::StatusOr<ScanStats> ScanMaskedByCode(const ScanQuery& query,
                                             std::int64_t eligible_count,
                                             const Route& route, CodePass& pass,
                                             AttentionState& state) const;

  // Returns the number of lists that find the best rows if a share `rate` of
  // the rows is eligible.
  double ProbesFor(std::int64_t probe_count, double rate) const;
  double CostOfRows(std::int64_t row_count) const;
  double CostOfLists(double probes, double rate) const;
  double CostOfCodes(bool pools) const;
  double CostOfListCodes(double lists) const;
  // True if reading all codes, with proof, costs less than visiting this many
  // lists.
  bool ProofCostsLess(std::int64_t probe_count) const;

  // Visits lists in the order of their ranks, until at least `wanted` eligible
  // rows are found and as many lists are visited as the share of eligible rows
  // in them calls for, for a shortlist of k. scores: of all lists. visit(lists)
  // receives ascending lists; found() returns how many eligible rows were in
  // all lists so far. Returns true if all lists were visited.
  template <typename Visit, typename Found>
  absl::StatusOr<bool> VisitUntilEnough(std::span<std::uint64_t> ranks,
                                        std::span<const float> scores,
                                        const Route& route, std::int64_t k,
                                        std::int64_t wanted, Visit visit,
                                        Found found) const;
  absl::Status ScanRows(const Bitmap& eligible, RowScan& scan) const;
  std::int64_t RowCountOf(std::int32_t list) const;

  const InvertedLists lists_;
  std::vector<std::int32_t> positions_;  // by row; -1: no key
  Bitmap keyed_;                         // rows with keys
  const bool cosine_;                    // codes are of normalised keys
  const std::shared_ptr<const IvfTraining> training_;
  // Number of keys here as a share of those that the training was learned from,
  // at most 1.
  const double key_share_;
  const double square_distance_;
  const ListValues key_values_;             // for rows that pool their keys
  const std::optional<ListValues> values_;  // for other rows
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_IVF_LIST_INDEX_H_
