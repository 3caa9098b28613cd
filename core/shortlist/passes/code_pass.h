// One query's pass over codes: what attends most is kept and then scored from
// its floats, everything else weighs what its code says. Internal.
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
  // Keys scored from their floats, the best by code: at least so many, beside
  // those that may be among the k best.
  std::int64_t rescore_count = 0;
  // Every key that may be among the k best is scored from its floats, however
  // codes err. Else those that may be if no code errs by more than a few
  // standard deviations.
  bool certified = false;
  // So many of the k best may be missing in the mean because their codes err,
  // so that fewer keys are scored from floats. Without effect for k below 20,
  // if certified, if a rescore_count is wanted, and where codes hardly tell the
  // best apart.
  double lost_count = 0;
  // The sums have bounds, which takes as long again as the sums. If certified.
  // All keys are then taken by the same bits.
  bool bounds = false;
  // 95 % of the sums are to be off by no more than this in their logs: what is
  // left to codes is corrected by keys that are drawn and scored from their
  // floats. 0: it is not. All keys are then taken, in their order.
  double precision = 0;
  // With a precision: 8 bits are read as quickly as 4, so that they are
  // wherever the fewest draws suffice with them. No rescore_count is then
  // wanted, unless values are pooled.
  bool few_codes = false;
  // Of the keys that the precision is of, so many are in these lists.
  double key_share = 1;
  // What is pooled, if the state pools: from floats of keys scored from
  // theirs, else from codes. All keys are then taken, in their order.
  const ListValues* values = nullptr;
};

// Order: Start, Take any number of times, Finish; then Start again: the object
// keeps its memory from query to query. Neither what is kept nor the sums
// depend on the order of the takes. Not thread-safe.
class CodePass {
 public:
  // Keys that are taken at once, at most.
  static constexpr std::int64_t kTakeKeys = 1024;

  // `query` and `lists`, whose codes are usable, must outlive the pass. k best
  // keys are wanted. all_eligible: none is masked, and all are visible. False
  // if the query's logits can't be had from codes: they may be beyond a float,
  // or so sharp that codes say nothing.
  // `coded`: the query, if it was coded already for the lists' rotation.
  bool Start(const ScanQuery& query, const InvertedLists& lists, std::int64_t k,
             bool all_eligible, const CodePassOptions& options,
             const CodedQuery* coded = nullptr);

  const CodedQuery& coded() const { return coded_; }
  const ScanQuery& query() const { return *query_; }
  CodeBits bits() const { return options_.bits; }
  // Whether so many bits say enough of a logit for its exp, and for the
  // precision, and products with lists' means are floats.
  bool MayRead(CodeBits bits) const;
  // Keys that are taken from now on have logits by so many bits, which these
  // may be. If certified.
  void Read(CodeBits bits);

  // Before keys of the list are taken, and before any are. `product` is that of
  // the query with the list's mean, by DotRows.
  void SetListProduct(std::int64_t list, float product);
  // The logit that it makes, for other passes of the query.
  float ListLogit(std::int64_t list) const {
    return list_logits_[static_cast<std::size_t>(list)];
  }
  void SetListLogit(std::int64_t list, float logit);
  void ScoreList(std::int64_t list);
  // For several passes over the same lists at a time.
  static void ScoreAllLists(std::span<CodePass* const> passes);
  // Logits of all lists, once they are scored.
  std::span<const float> list_logits() const { return list_logits_; }

  // Takes keys [begin, begin + count), the first of them in `list`, whose
  // logits by code these are; they are overwritten.
  void Take(std::int64_t list, std::int64_t begin, std::int64_t count,
            float* logits);

  // The query's interrupt. Once it is set, what was taken is of no use.
  absl::Status Poll() const;

  // Eligible keys taken so far.
  std::int64_t taken_count() const { return taken_count_; }

  // Once finished: log of the sum of exp(logit) over what was taken in lists
  // whose score is at most this, by code; -infinity if that is nothing.
  double LogSum(std::span<const float> list_scores, float most) const;

  // Adds to the state what was taken, and says in `stats` what is not exact.
  // `complete`: every eligible key was taken. Errors as KeyIndex::Scan.
  absl::Status Finish(bool complete, AttentionState& state, ScanStats& stats);

  // Room for keys, which no start makes less: each takes some 50 bytes.
  std::size_t room() const { return kept_.logits.size(); }

 private:
  // Keys that may be scored from floats, column by column. The columns have
  // room for capacity_ and a take more.
  struct Kept {
    std::vector<float> logits;   // by code, with what corrects the mean of exp
    std::vector<float> margins;  // until SortKept, as uppers
    std::vector<float> uppers;   // with the margin
    std::vector<std::int32_t> positions;
    std::size_t size = 0;
  };

  // Sums over the keys that were taken at once.
  struct Taken {
    std::int64_t begin = 0;
    std::int64_t count = 0;
    std::int64_t list = 0;  // of the first
    CodeBits bits = CodeBits::k8;
    SoftmaxPartition partition;
  };
  // Kept keys [first, last), of those that were taken at once from `begin` on.
  struct Run {
    std::int64_t begin = 0;
    std::size_t first = 0;
    std::size_t last = 0;
  };

  // What the logit of a key may be above that of its code, and, if certified,
  // below it.
  float Margin(std::int32_t position) const {
    return margin_per_scale_ *
               lists_->codes.scales()[static_cast<std::size_t>(position)] +
           margin_;
  }
  // Of a key's logit by code.
  float Variance(std::int32_t position) const {
    const float scale =
        lists_->codes.scales()[static_cast<std::size_t>(position)];
    return 2 * half_variance_ * scale * scale;
  }
  void Shrink(bool last);
  // Makes margins as small as lost_count lets them be.
  void NarrowMargins();
  // Makes the logits of others -infinity, and counts those that are left.
  std::int64_t LeaveEligible(std::int64_t begin, std::int64_t count,
                             float* logits) const;
  void TakeBounds(std::int64_t begin, std::int64_t count, const float* logits);
  // `greatest` of the logits.
  void Keep(std::int64_t begin, std::int64_t count, const float* logits,
            float greatest);
  void SetThreshold(std::span<const float> logits, std::int64_t wanted);
  void MakeRoom();
  // In the order of the takes, until MergeTaken, which adds up taken_ in the
  // order of keys.
  void SortKept();
  void MergeTaken();
  absl::Status RescoreKept(AttentionState& state);
  // Sets pooled_ to what the kept keys pool.
  void FindKeptValues();
  // Adds what codes lack to the logits of keys from `begin` on, and returns the
  // greatest.
  float Correct(std::int64_t list, std::int64_t begin, std::int64_t count,
                float* logits) const;
  // Whether a kept key's code stays in the rest.
  bool CountsTwice(std::size_t kept) const;
  // Sets kept_near_cut_.
  void FindNearCut();
  // What is left of the sums without the kept keys.
  SoftmaxPartition Rest();
  // Scores some of the rest from their floats, and corrects its sums by them.
  // log_kept is the log of what the state holds so far: the kept keys, and what
  // other scans have left in it; nothing if that is empty.
  absl::Status CorrectRest(std::optional<double> log_kept,
                           SoftmaxPartition& rest, ScanStats& stats);
  // Of a key's logit, in the mean over keys.
  double MeanVariance(CodeBits bits) const;
  // That drawn keys may leave to the sums, for the precision.
  double WantedDeviation() const;
  // Keys to draw if codes of so many bits stand for this share of the sums.
  double DrawsWanted(CodeBits bits, double share) const;
  // Whether as many as are likely to be wanted take no longer than reading more
  // bits.
  bool DrawsSuffice(CodeBits bits) const;
  // Whether no more are wanted than are made at least, whatever share of the
  // sums codes stand for.
  bool FewestDrawsSuffice(CodeBits bits) const;
  std::int64_t MostDraws() const;
  // What drawn keys say of what codes leave, relative to what its codes weigh:
  // its sum, with the variance of that, and by how much the other sums are off.
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
  // The rest's sum of squares, of what was read by 4 bits and by 8, and how
  // many times that equal keys make it count.
  struct Squares {
    double coarse = 0;
    double fine = 0;
  };
  Squares RestSquares(const SoftmaxPartition& rest) const;
  // How often keys that were taken at once are there, in the mean.
  double RepeatsOf(const Taken& taken) const;
  // Of a key.
  double RepeatsAt(std::int32_t position) const {
    const KeyCodes& codes = lists_->codes;
    return codes.has_repeats() ? codes.RepeatsOf(lists_->ListAt(position)) : 1;
  }
  // Of keys that were not kept. Near those that were is what weighs most of
  // them; but where these are all alike, their codes are exact.
  double RestSquareScale() const;
  // What `rest` pools, into value_sum_, and how far that may be off.
  PooledError PoolRest(const SoftmaxPartition& rest);
  void SetBounds(ScanStats& stats) const;

  const ScanQuery* query_ = nullptr;
  const InvertedLists* lists_ = nullptr;
  std::int64_t k_ = 0;
  bool all_eligible_ = false;
  CodePassOptions options_;
  bool mixed_ = false;  // not all was read by one number of bits
  CodedQuery coded_;
  float margin_per_scale_ = 0;
  float margin_ = 0;
  float max_margin_ = 0;
  // Half the variance of a key of scale 1. An error e that is independent of
  // the logit makes exp(logit + e) greater in the mean, by exp(variance / 2).
  float half_variance_ = 0;
  // That, or 0 where sums have bounds.
  float correction_ = 0;
  std::vector<float> list_logits_;  // of the lists' means
  std::vector<Taken> taken_;
  // Beginnings of the takes, ascending, and which they are; then, in this
  // order, their greatest logits, and the exps of these less the greatest.
  std::vector<std::pair<std::int64_t, std::size_t>> merge_order_;
  std::vector<std::pair<std::int64_t, std::size_t>> takes_;  // scratch
  std::vector<float> maxima_;
  std::vector<double> factors_;
  TailSample tail_;             // with a precision
  ValuePool pool_;              // with values
  SoftmaxPartition partition_;  // of all that was taken, once it is
  SoftmaxPartition lower_;      // of logits less, and plus their margins
  SoftmaxPartition upper_;
  std::int64_t taken_count_ = 0;
  float threshold_ = 0;  // of what may be kept, margin included
  std::size_t capacity_ = 0;
  Kept kept_;
  // Whether a kept key's code is so near to what is not kept that it stands for
  // what weighs too little there.
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
