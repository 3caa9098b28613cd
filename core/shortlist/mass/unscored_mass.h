// Guesses the sum of exp(logit) over the lists that a query did not visit, from
// statistics of the lists and a few blocks of codes. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_MASS_UNSCORED_MASS_H_
#define ATTENDANT_CORE_SHORTLIST_MASS_UNSCORED_MASS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/softmax/score.h"
#include "core/attention/softmax/state.h"
#include "core/base/aligned_buffer.h"
#include "core/base/minus_infinity.h"
#include "core/shortlist/keys/coded_query.h"
#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/lists/query_margin.h"
#include "core/shortlist/scan/dead_keys.h"
#include "core/shortlist/scan/eligible_rows.h"

namespace attendant {

class UnscoredMass;

// Trust is learned with all keys eligible, with a fourth, and with a sixteenth.
inline constexpr int kLearnedRates = 3;
constexpr double LearnedRate(int i) {
  return i == 0 ? 1 : LearnedRate(i - 1) / 4;
}

struct UnscoredMassOptions {
  ScoreKind score_kind = ScoreKind::kDot;
  // Number of lists that a query visits, by LearnedRate. If all keys are
  // eligible and there is a margin, a query visits instead the lists at most
  // the margin below ListMeans::ExpectedScore of the best sought_count keys.
  std::array<std::int64_t, kLearnedRates> probe_counts = {1, 1, 1};
  std::optional<QueryMargin> margin = std::nullopt;
  double sought_count = 0;
  // Mean square distance of the keys from their lists' means.
  double square_distance = 0;
  // Queries that were asked, [n, dim], which replace sampled keys; none is
  // zero.
  std::span<const float> asked = {};
  // The mass whose statistics of the lists are taken over, so that draws by
  // them stay the same; null: statistics are made from the keys.
  const UnscoredMass* lists_known = nullptr;
  std::uint64_t seed = 0;  // that of the codes of the keys
  int thread_count = 1;    // >= 1; does not change what is learned
  const std::atomic<bool>* cancelled = nullptr;
};

// The keys of one index, in the lists of a training.
struct ListPart {
  const InvertedLists* lists = nullptr;
  const EligibleRows* eligible = nullptr;  // null: all keys are
  const DeadKeys* dead = nullptr;          // not null: all others are eligible

  // True if it is not known how many keys of each list are eligible.
  bool masked() const { return eligible != nullptr && dead == nullptr; }
  // The number of keys of each list that are not known to be dead.
  std::span<const float> counts() const {
    return dead != nullptr ? dead->live_counts : lists->counts;
  }
};

// Rows in the lists of a training that have no codes yet.
struct GrowingPart {
  std::span<const std::int32_t> list_of;  // by row; -1: in no list
  EligibleRows eligible;
  std::int64_t rest_count = 0;  // eligible rows in lists that were not visited
};

// The state of a query after it has visited some lists.
struct VisitedMass {
  std::span<const float> query;  // [dim]
  double logit_factor = 1;
  const CodedQuery* coded = nullptr;  // of query and logit_factor
  // Scores of all lists, as ScoreLists and ScoreListsByCode give them.
  std::span<const float> scores;
  std::span<const std::int32_t> lists;  // visited lists
  // Log of the sum of exp(logit) over all eligible keys of the visited lists,
  // and over those of them in the farther half of the lists; -infinity is a sum
  // of 0.
  double log_sum = 0;
  double log_farther_sum = 0;
  bool masked = false;          // some part is, see ListPart
  double eligible_rate = 1;     // share of all keys that is eligible
  std::int64_t rest_count = 0;  // eligible keys of the other lists
  // Mean square distance of the keys from their lists' means; 0: as in Learn.
  double square_distance = 0;
  // Rows that none of the above counts.
  std::span<const GrowingPart> growing = {};
};

struct UnscoredGuess {
  std::int64_t count = 0;  // eligible keys of the other lists
  // Log of the sum of their exp(logit), and log of the variance of that sum
  // about the true one. Whatever the distribution, 1.96 deviations hold 95 % of
  // queries.
  double log_sum = kMinusInfinity;
  double log_variance = kMinusInfinity;
  // Means over these keys, weighted by exp(logit): of the logit, and, as a log,
  // of exp(logit). Their errors are not known.
  double mean_logit = 0;
  double log_mean_exp = 0;

  SoftmaxPartition partition() const;
};

// Returns the score that divides the visited lists, at least one, into halves:
// lists with at most this score are the farther half.
float FartherScore(std::span<const float> scores,
                   std::span<const std::int32_t> lists);

// Statistics of lists, and the measured accuracy of guesses made from them.
// Immutable; thread-safe. docs/mass.md derives the method and says what else
// was tried.
//
// For list l, with n_l keys of mean m_l, the logits under a query q of factor f
// are taken to be normal, with mean f q . m_l and variance s_l^2, where
//   s_l^2 = f^2 ((q . m_l / |m_l|)^2 a_l + q' W q v_l).
// Here a_l is the keys' variance along m_l, v_l the rest of their total
// variance, and W, of trace 1, the covariance of that rest in all lists. The
// expected sum of a list's exp(logit) is then
//   M_l = n_l exp(f q . m_l + s_l^2 / 2),
// unless s_l > c = sqrt(2 log n_l). Beyond c the mean is dominated by keys too
// rare to be present, and log M_l = f q . m_l + s_l c (the random energy model,
// Derrida 1981).
//
// If the M_l are known to be accurate, their sum is the guess. Otherwise the
// guess is made from kDraws blocks of codes, of lists drawn in proportion to
// M_l^kTemper. Neither method sees a heavy key that stands alone, so the
// deviation of the guess is increased by k sqrt(V g), where V is the sum over
// the visited lists and g the sum over their farther half. k is learned from
// sample queries, both keys and others that no key is near to, with all keys
// eligible and with only some of them: in the latter case more lists are
// visited, and the best of fewer keys is farther away.
class UnscoredMass {
 public:
  // Makes an object that knows nothing: usable() is false.
  UnscoredMass() = default;

  // Learns from `lists`. Scores all their keys for 128 sample queries, and for
  // as many again, or for each query that was asked. Deterministic for a seed
  // and a kernel level. Error: Cancelled.
  static absl::StatusOr<UnscoredMass> Learn(const InvertedLists& lists,
                                            const UnscoredMassOptions& options);

  // Bytes of memory that Learn takes while it runs, in addition to the lists.
  // asked_count is 0 for learning before any query is asked.
  static std::int64_t LearningBytes(std::int64_t list_count,
                                    std::int64_t asked_count);

  // Number of keys that represent the covariance within lists.
  static constexpr std::int64_t kMaxDirections = 128;

  // Number of blocks of codes that a guess by draws reads, 1 KB each for 128
  // dimensions.
  static constexpr std::int64_t kDraws = 16;

  bool usable() const { return usable_; }

  // Guesses the mass of the lists that were not visited. `parts`, at least one,
  // have the means of the lists of Learn, and all or some of their keys, or
  // others like them; eligible_rate is then the share of as many keys as Learn
  // had. Growing rows are assumed to hold M_l / n_l each, with a deviation of
  // the same size, so they should be few. Returns false if no guess is possible
  // because too few keys are eligible. The same arguments give the same bytes,
  // whatever ran before.
  bool Guess(std::span<const ListPart> parts, const VisitedMass& visited,
             UnscoredGuess& guess) const;

  // True if the keys are distributed as those of Learn. Otherwise the accuracy
  // of M was learned for other keys.
  bool LieAlike(const VisitedMass& visited) const;

  // PredictLists and LogUnseen are the two parts of a guess; they require
  // usable(). Sets log_sums to log M_l of all lists, as if all their keys were
  // eligible; -infinity for visited and empty lists.
  void PredictLists(const InvertedLists& lists, const VisitedMass& visited,
                    std::vector<float>& log_sums) const;
  // Guesses the mass of these lists, whose predictions are in log_sums, as
  // PredictLists sets them; those of other lists are overwritten. The variance
  // is not set. `part` must not be masked.
  UnscoredGuess GuessOfLists(const ListPart& part, const VisitedMass& visited,
                             std::span<const std::int32_t> lists,
                             std::span<float> log_sums) const;
  // Log of k sqrt(V g).
  double LogUnseen(const VisitedMass& visited) const {
    return LogUnseen(visited, TrustAt(visited));
  }

  std::int64_t memory_bytes() const;

  void Save(ByteSink& sink) const;
  // `seed` is that of Learn's options.
  static UnscoredMass Load(ByteSource& source, std::int64_t list_count,
                           std::int64_t dim, std::uint64_t seed);

 private:
  friend class UnscoredMassLearner;

  // Sharpness is |q| f times the root mean square norm of the keys. Trust is
  // measured at sharpness 2, 4, 8, ..., 256, and interpolated linearly over its
  // logarithm. Below 2 the values of 2 apply. Above 256 errors of logs grow in
  // proportion to the sharpness, as gaps between logits do.
  static constexpr int kSharpnessCount = 8;
  static constexpr double kMinSharpness = 2;
  // Number of draws that must hold eligible keys for a guess to be possible.
  static constexpr std::int64_t kMinEligibleDraws = 8;

  // The measured accuracy of a guess.
  struct Trust {
    // Mean of log(true sum / sum of M), and the root mean square about the
    // mean.
    double log_bias = 0;
    double log_deviation = 0;
    // Log of k, since far beyond what was measured k exceeds a double.
    double log_unseen_factor = kMinusInfinity;
  };
  // Trust for queries whose visited lists hold a mass of this height: the log
  // of their sum over the sharpness, which for a great sharpness is about the
  // cosine of the best key. If not all keys are eligible, the sum is what it
  // would be if they were.
  struct Measure {
    double height = 0;
    double log_bias = 0;
    double log_deviation = 0;
    double unseen_factor = 0;  // k

    static Measure Mix(const Measure& a, const Measure& b, double share_of_b);
  };
  // Ascending by height, at least one; linearly interpolated.
  using Measures = std::vector<Measure>;

  // Predicted mass of lists, relative to exp(max); empty if there is none.
  struct ListExps {
    float max = kMinusInfinityF;
    double sum = 0;
    std::span<const float> of_list;

    bool empty() const { return of_list.empty(); }
  };

  // Predicted logs of the mass of lists with log_counts keys, in logs.
  struct Prediction {
    std::span<const float> log_counts;
    std::span<const float> log_sums;

    float Max() const;
    // The result is valid until the thread's next call.
    ListExps Exps() const;
    void ExpsOfKeys(float power, float max, std::vector<float>& of_key) const;
  };

  // Estimates of the sum from draws, relative to exp(max).
  struct Draws {
    float max = 0;
    double sum = 0;
    double deviation = 0;  // of sum
    double sum_gap = 0;    // as in SoftmaxPartition
    double sum_square = 0;
    std::int64_t eligible_count = 0;  // draws that hold an eligible key

    // True if the draws allow a guess.
    bool suffice() const { return eligible_count >= kMinEligibleDraws; }
  };

  std::int64_t direction_count() const {
    return static_cast<std::int64_t>(directions_.size()) / dim_;
  }
  // Codes the directions, which must be set. `seed` is that of the codes of the
  // keys.
  void CodeDirections(std::uint64_t seed);
  Trust TrustAt(const VisitedMass& visited) const;
  static Measure MeasureAt(const Measures& measures, double height);
  static double HeightOf(const VisitedMass& visited, double sharpness);
  static double LogUnseen(const VisitedMass& visited, const Trust& trust);
  void Predict(const ListMeans& means, std::span<const float> log_counts,
               const VisitedMass& visited, std::vector<float>& log_sums) const;
  // Assumes that each list has as many keys as in the part that has the most of
  // them; with several parts, or with growing rows, at least one. The result is
  // valid until the thread's next call.
  Prediction PredictParts(std::span<const ListPart> parts,
                          const VisitedMass& visited) const;
  // Adds the growing rows to a guess of the parts.
  static void AddGrowing(std::span<const ListPart> parts,
                         std::span<const GrowingPart> growing,
                         const Prediction& prediction, UnscoredGuess& guess);
  // Log of the sum of exp(log_sums); -infinity if there is nothing.
  static double LogSum(std::span<const float> log_sums);
  // Sets the means of a guess whose lists hold what they are predicted to hold.
  void SetMeans(const ListMeans& means, const VisitedMass& visited,
                const Prediction& prediction, const ListExps& exps,
                UnscoredGuess& guess) const;
  // Log of the sum over the keys of all parts; -infinity if there is nothing.
  static double LogPredictedSum(std::span<const ListPart> parts,
                                const Prediction& prediction,
                                const ListExps& exps);
  // The share of the sum that the parts would have without dead keys that these
  // are predicted to hold.
  static double DeadShare(std::span<const ListPart> parts,
                          const Prediction& prediction);
  // Log of the variance of that sum caused by scores from codes of 4 bits of
  // the means. Trust does not cover it, since it is learned with scores from
  // floats. It is large if few lists hold most of the sum.
  static double LogScoreVariance(const ListMeans& means,
                                 const VisitedMass& visited,
                                 const ListExps& exps);
  // `most` is at most kDraws.
  static Draws Draw(std::span<const ListPart> parts, const VisitedMass& visited,
                    const Prediction& prediction, std::int64_t most);
  // Decides whether the prediction alone is the guess.
  static bool UsesPrediction(const VisitedMass& visited, const Trust& trust);
  static UnscoredGuess GuessByPrediction(const VisitedMass& visited,
                                         double log_predicted,
                                         const Trust& trust);
  static UnscoredGuess GuessByDraws(const VisitedMass& visited,
                                    const Draws& draws, const Trust& trust);

  bool usable_ = false;
  double key_norm_ = 0;             // root mean square
  double square_distance_ = 0;      // of the keys that it was learned from
  std::vector<float> variances_;    // [lists], v
  std::vector<float> mean_shares_;  // [lists], a / |m|^2
  // Rows x with x'x / row count = W: keys minus their lists' means.
  AlignedBuffer<float> directions_;
  KeyCodes direction_codes_;  // of directions_, a quarter of the bytes
  std::int64_t dim_ = 0;
  std::vector<Measures> measures_;  // [kLearnedRates, kSharpnessCount]
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_MASS_UNSCORED_MASS_H_
