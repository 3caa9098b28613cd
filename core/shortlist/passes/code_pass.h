// One query's pass over codes. The keys that attend most are kept and then
// scored from their floats; every other key has the weight that its code gives.
// Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_PASSES_CODE_PASS_H_
#define ATTENDANT_CORE_SHORTLIST_PASSES_CODE_PASS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/softmax/state.h"
#include "core/shortlist/keys/coded_query.h"
#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/lists/list_values.h"
#include "core/shortlist/mass/tail_sample.h"
#include "core/shortlist/passes/value_pool.h"
#include "core/shortlist/scan/key_index.h"
#include "core/shortlist/scan/key_scorer.h"

namespace attendant {

struct CodePassOptions {
  CodeBits bits = CodeBits::k8;
  // At least this many keys, the best by code, are scored from their floats, in
  // addition to those that may be among the k best.
  std::int64_t rescore_count = 0;
  // If set, every key that may be among the k best is scored from its floats,
  // however large the errors of codes. Otherwise those that may be if no code
  // errs by more than a few standard deviations.
  bool certified = false;
  // Mean number of the k best that may be missed because of the errors of
  // codes, so that fewer keys are scored from floats. Has no effect for k below
  // 20, if `certified`, with a rescore_count, or if codes hardly tell the best
  // apart.
  double lost_count = 0;
  // The sums get bounds, which takes as long again as the sums. Requires
  // `certified`, and that all keys are taken with the same bits.
  bool bounds = false;
  // Wanted precision: 95 % of the logs of the sums are off by at most this.
  // What is left to codes is corrected by keys that are drawn and scored from
  // their floats. 0: no correction. Otherwise all keys must be taken, in their
  // order.
  double precision = 0;
  // With a precision: 8 bits are read as quickly as 4, so they are used if the
  // fewest draws suffice with them. rescore_count is then ignored, unless
  // values are pooled.
  bool few_codes = false;
  // Share, in these lists, of the keys that the precision applies to.
  double key_share = 1;
  // Codes of what is pooled, if the state pools: keys scored from floats pool
  // floats, others codes. All keys must then be taken, in their order.
  const ListValues* values = nullptr;
};

// Order of calls: Start, Take any number of times, Finish. Start may follow
// again; the object keeps its memory from query to query. Neither the kept keys
// nor the sums depend on the order of the takes. Not thread-safe.
class CodePass {
 public:
  // Most keys of one Take.
  static constexpr std::int64_t kTakeKeys = 1024;

  // Starts a pass for the k best keys. `query` and `lists`, whose codes must be
  // usable, must outlive the pass. all_eligible: no key is masked, and all are
  // visible. `coded`: the query, if it is already coded for the lists'
  // rotation. Returns false if codes cannot give the query's logits: they may
  // exceed a float, or be so sharp that codes say nothing.
  bool Start(const ScanQuery& query, const InvertedLists& lists, std::int64_t k,
             bool all_eligible, const CodePassOptions& options,
             const CodedQuery* coded = nullptr);

  const CodedQuery& coded() const { return coded_; }
  const ScanQuery& query() const { return *query_; }
  CodeBits bits() const { return options_.bits; }
  // True if `bits` are enough for the exp of a logit and for the precision, and
  // the products with lists' means are floats.
  bool MayRead(CodeBits bits) const;
  // Sets the bits of the logits of keys that are taken from now on; they must
  // satisfy MayRead. For certified passes.
  void Read(CodeBits bits);

  // Sets the product of the query with the list's mean, as given by DotRows.
  // Must be called before keys of the list are taken.
  void SetListProduct(std::int64_t list, float product);
  // The list's logit that SetListProduct made, for other passes of the query.
  float ListLogit(std::int64_t list) const { return list_logits_[list]; }
  void SetListLogit(std::int64_t list, float logit);
  void ScoreList(std::int64_t list);
  // Scores all lists for several passes over the same lists at once.
  static void ScoreAllLists(std::span<CodePass* const> passes);
  // Logits of all lists, once they are scored.
  std::span<const float> list_logits() const { return list_logits_; }

  // Sets lost_count to 0.
  void KeepAll() {
    options_.lost_count = 0;
    keeps_all_ = true;
  }
  // True if KeepAll was called since Start.
  bool keeps_all() const { return keeps_all_; }

  // For certified passes. Returns a logit that at least k of the keys taken so
  // far have, or a greater one; -infinity if fewer than k were taken, +infinity
  // if k is 0. Drops kept keys that are not among the best of these.
  float LeastOfBest();
  // Returns the log of the sum of exp(logit), by code, over what was taken so
  // far; -infinity if nothing was.
  double LogTaken() const;
  // For certified passes. Returns a bound of the rounding of a logit that is
  // the sum of its list's and the rest.
  double LogitRounding() const { return 2.0 * margin_; }

  // Takes keys [begin, begin + count), the first of which is in `list`.
  // `logits` are their logits by code, which are overwritten.
  void Take(std::int64_t list, std::int64_t begin, std::int64_t count,
            float* logits);

  // Returns the error of the query's interrupt, after which what was taken must
  // not be used.
  absl::Status Poll() const;

  // Number of eligible keys taken so far.
  std::int64_t taken_count() const { return taken_count_; }

  // After Finish: log of the sum of exp(logit), by code, over what was taken in
  // lists whose score is at most `most`; -infinity if nothing was.
  double LogSum(std::span<const float> list_scores, float most) const;

  // Adds to the state what was taken, and sets in `stats` what is not exact.
  // `complete`: every eligible key was taken. Errors as KeyIndex::Scan.
  absl::Status Finish(bool complete, AttentionState& state, ScanStats& stats);

  // Number of keys that the buffers have room for, some 50 bytes each; Start
  // never reduces it.
  std::size_t room() const { return kept_.logits.size(); }

 private:
  // Keys that may be scored from floats, column by column. The columns have
  // room for capacity_ keys and one more take.
  struct Kept {
    std::vector<float> logits;   // by code, corrected for the mean of exp
    std::vector<float> margins;  // valid until SortKept, like uppers
    std::vector<float> uppers;   // logits plus margins
    std::vector<std::int32_t> positions;
    std::size_t size = 0;
  };

  // Sums over the keys of one take.
  struct Taken {
    std::int64_t begin = 0;
    std::int64_t count = 0;
    std::int64_t list = 0;  // of the first key
    CodeBits bits = CodeBits::k8;
    SoftmaxPartition partition;
  };
  // Kept keys [first, last), from the take that begins at key `begin`.
  struct Run {
    std::int64_t begin = 0;
    std::size_t first = 0;
    std::size_t last = 0;
  };

  // Upper bound of a key's logit minus its logit by code and, if certified, of
  // its logit by code minus its logit.
  float Margin(std::int32_t position) const {
    return margin_per_scale_ * lists_->codes.scales()[position] + margin_;
  }
  // Variance of the error of a key's logit by code.
  float Variance(std::int32_t position) const {
    const float scale = lists_->codes.scales()[position];
    return 2 * half_variance_ * scale * scale;
  }
  void Shrink(bool last);
  // Makes margins as small as lost_count allows.
  void NarrowMargins();
  // Sets the logits of keys that are not eligible to -infinity, and returns how
  // many are left.
  std::int64_t LeaveEligible(std::int64_t begin, std::int64_t count,
                             float* logits) const;
  void TakeBounds(std::int64_t begin, std::int64_t count, const float* logits);
  // `greatest` is the greatest of the logits.
  void Keep(std::int64_t begin, std::int64_t count, const float* logits,
            float greatest);
  void SetThreshold(std::span<const float> logits, std::int64_t wanted);
  void MakeRoom();
  // Kept keys are in the order of the takes until SortKept. MergeTaken adds up
  // taken_ in the order of keys.
  void SortKept();
  void MergeTaken();
  absl::Status RescoreKept(AttentionState& state);
  // Sets pooled_ to the values that the kept keys pool.
  void FindKeptValues();
  // Adds the correction of codes to the logits of keys from `begin` on, and
  // returns the greatest logit.
  float Correct(std::int64_t list, std::int64_t begin, std::int64_t count,
                float* logits) const;
  // True if the code of a kept key also counts in the rest.
  bool CountsTwice(std::size_t kept) const;
  // Sets kept_near_cut_.
  void FindNearCut();
  // Returns the sums without the kept keys.
  SoftmaxPartition Rest();
  // Scores some keys of the rest from their floats, and corrects its sums by
  // them. log_kept is the log of what the state holds so far: the kept keys,
  // and what other scans have left in it; nullopt if the state is empty.
  absl::Status CorrectRest(std::optional<double> log_kept,
                           SoftmaxPartition& rest, ScanStats& stats);
  // Variance of the error of a key's logit, in the mean over keys.
  double MeanVariance(CodeBits bits) const;
  // Deviation that drawn keys may leave to the sums under the precision.
  double WantedDeviation() const;
  // Number of keys to draw if codes of `bits` stand for this share of the sums.
  double DrawsWanted(CodeBits bits, double share) const;
  // True if the number of draws that is likely to be wanted takes no longer
  // than reading more bits.
  bool DrawsSuffice(CodeBits bits) const;
  // True if the least number of draws suffices, whatever share of the sums
  // codes stand for.
  bool FewestDrawsSuffice(CodeBits bits) const;
  std::int64_t MostDraws() const;
  // Estimates from drawn keys of the sums over the keys left to codes, relative
  // to the weight of their codes: the mean ratio with its variance, and the
  // errors of the other sums.
  struct Drawn {
    double mean = 0;
    double variance = 0;
    double gap_error = 0;
    double square_error = 0;
  };
  absl::StatusOr<Drawn> Draw(std::int64_t count, double log_tail, float max);
  bool DrawKey(const TailSample::Draw& draw, std::int32_t& position,
               double& log_probability) const;
  absl::Status ScoreFloats(std::span<const std::int32_t> positions,
                           KeyScorer& scorer);
  void SetVariance(const SoftmaxPartition& rest, ScanStats& stats) const;
  // The sums of squares of the rest, of what was read with 4 bits and with 8,
  // multiplied by the effect of equal keys.
  struct Squares {
    double coarse = 0;
    double fine = 0;
  };
  Squares RestSquares(const SoftmaxPartition& rest) const;
  // Returns the mean of KeyCodes::RepeatsOf over the keys of a take.
  double RepeatsOf(const Taken& taken) const;
  // Returns KeyCodes::RepeatsOf of the list of a key.
  double RepeatsAt(std::int32_t position) const {
    const KeyCodes& codes = lists_->codes;
    return codes.has_repeats() ? codes.RepeatsOf(lists_->ListAt(position)) : 1;
  }
  // Mean squared scale of the keys that were not kept. The heaviest of these
  // lie near the kept keys; but if the kept keys are all alike, their codes are
  // exact.
  double RestSquareScale() const;
  // Adds what `rest` pools to value_sum_, and returns how far it may be off.
  PooledError PoolRest(const SoftmaxPartition& rest);
  void SetBounds(ScanStats& stats) const;

  const ScanQuery* query_ = nullptr;
  const InvertedLists* lists_ = nullptr;
  std::int64_t k_ = 0;
  bool all_eligible_ = false;
  CodePassOptions options_;
  bool keeps_all_ = false;
  bool mixed_ = false;  // not all was read with the same bits
  CodedQuery coded_;
  float margin_per_scale_ = 0;
  float margin_ = 0;
  float max_margin_ = 0;
  // Half the variance of the logit of a key of scale 1. An error e that is
  // independent of the logit increases exp(logit + e) in the mean by a factor
  // of exp(variance / 2).
  float half_variance_ = 0;
  // half_variance_, or 0 if sums have bounds.
  float correction_ = 0;
  std::vector<float> list_logits_;  // of the lists' means
  std::vector<Taken> taken_;
  // The beginnings of the takes, ascending, with their index; then, in this
  // order, their greatest logits, and the exps of these minus the greatest.
  std::vector<std::pair<std::int64_t, std::size_t>> merge_order_;
  std::vector<std::pair<std::int64_t, std::size_t>> takes_;  // scratch
  std::vector<float> maxima_;
  std::vector<double> factors_;
  TailSample tail_;             // with a precision
  ValuePool pool_;              // with values
  SoftmaxPartition partition_;  // of all that was taken, after MergeTaken
  SoftmaxPartition lower_;      // of logits minus their margins
  SoftmaxPartition upper_;
  std::int64_t taken_count_ = 0;
  float threshold_ = 0;  // of what may be kept, margin included
  std::size_t capacity_ = 0;
  Kept kept_;
  // Nonzero if the code of a kept key is so near to the threshold that it makes
  // up for keys below it that weigh too little.
  std::vector<std::uint8_t> kept_near_cut_;
  // Scratch.
  std::vector<float> lowers_;
  std::vector<float> places_;
  std::vector<Run> runs_;
  std::vector<std::int32_t> sorted_positions_;
  std::vector<float> sorted_logits_;
  std::vector<float> logits_taken_off_;
  std::vector<TailSample::Draw> draws_;
  std::vector<std::int32_t> drawn_;
  std::vector<double> log_probabilities_;
  std::vector<std::int32_t> positions_;
  std::vector<RowIndex> rows_;
  std::vector<float> similarities_;
  std::vector<float> logits_;
  std::vector<const float*> pooled_;
  std::vector<std::int32_t> removed_positions_;
  std::vector<float> removed_logits_;
  std::vector<double> value_sum_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_PASSES_CODE_PASS_H_
