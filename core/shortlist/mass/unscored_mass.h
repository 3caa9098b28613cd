// The sum of exp(logit) over the lists that a query did not visit, guessed from
// what is known of the lists and from a few blocks of codes. Internal.
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
#include "core/shortlist/scan/eligible_rows.h"

namespace attendant {

class UnscoredMass;

// Trust is learned where all keys are eligible, a fourth, and a sixteenth.
inline constexpr int kLearnedRates = 3;
constexpr double LearnedRate(int i) {
  return i == 0 ? 1 : LearnedRate(i - 1) / 4;
}

struct UnscoredMassOptions {
  ScoreKind score_kind = ScoreKind::kDot;
  // Lists that a query visits, by LearnedRate; where all keys are eligible,
  // those at most the margin below ListMeans::ExpectedScore of the best
  // sought_count, if there is one.
  std::array<std::int64_t, kLearnedRates> probe_counts = {1, 1, 1};
  std::optional<float> margin;
  double sought_count = 0;
  // Mean, of the keys from their lists' means.
  double square_distance = 0;
  // Queries that were asked, [n, dim], which stand in place of sampled keys;
  // none is zero.
  std::span<const float> asked = {};
  // Whose statistics of the lists are taken over, so that what is drawn by them
  // stays the same; null: they are those of the keys.
  const UnscoredMass* lists_known = nullptr;
  std::uint64_t seed = 0;  // that of the codes of the keys
  int thread_count = 1;    // >= 1; what is learned is the same for any
  const std::atomic<bool>* cancelled = nullptr;
};

// The keys of one index, in the lists of a training.
struct ListPart {
  const InvertedLists* lists = nullptr;
  const EligibleRows* eligible = nullptr;  // null: all keys are
};

// Rows of the lists of a training that have no codes yet.
struct GrowingPart {
  std::span<const std::int32_t> list_of;  // by row; -1: none
  EligibleRows eligible;
  std::int64_t rest_count = 0;  // eligible ones in lists that were not visited
};

// What a query knows after it has visited some lists.
struct VisitedMass {
  std::span<const float> query;  // [dim]
  double logit_factor = 1;
  const CodedQuery* coded = nullptr;  // of both
  // Of all lists, as ScoreLists and ScoreListsByCode give them.
  std::span<const float> scores;
  std::span<const std::int32_t> lists;  // those visited
  // Log of the sum over all eligible keys of the visited lists, and of those
  // among them that are not of the nearer half; -infinity is a sum of 0.
  double log_sum = 0;
  double log_farther_sum = 0;
  bool masked = false;          // some keys are not eligible, or not visible
  double eligible_rate = 1;     // share of all keys that is eligible
  std::int64_t rest_count = 0;  // eligible keys of the other lists
  // Mean, of the keys from their lists' means; 0: as of Learn's.
  double square_distance = 0;
  // Rows that are counted in none of the above.
  std::span<const GrowingPart> growing = {};
};

struct UnscoredGuess {
  std::int64_t count = 0;  // eligible keys of the other lists
  // Log of the sum of their exp(logit), and of the variance of that about the
  // true one, of whatever shape: 1.96 deviations hold 95 % of queries.
  double log_sum = kMinusInfinity;
  double log_variance = kMinusInfinity;
  // Means over them, by exp(logit): of the logit, and, as its log, of
  // exp(logit). Nothing is known of how far off they are.
  double mean_logit = 0;
  double log_mean_exp = 0;

  SoftmaxPartition partition() const;
};

// Of visited lists, at least one, those whose score is at most this are the
// farther half.
float FartherScore(std::span<const float> scores,
                   std::span<const std::int32_t> lists);

// Statistics of lists, and how far guesses from them may be trusted, which is
// measured when they are made. Immutable; thread-safe. docs/mass.md derives it
// and says what else was tried.
//
// Of list l, with n_l keys of mean m_l, logits under a query q of factor f are
// taken to be normal, with mean f q . m_l and variance s_l^2, where
//   s_l^2 = f^2 ((q . m_l / |m_l|)^2 a_l + q' W q v_l),
// a_l being the keys' variance along m_l, v_l the rest of their total variance,
// and W, of trace 1, the covariance of that rest in all lists. Their sum is
// then expected to be
//   M_l = n_l exp(f q . m_l + s_l^2 / 2),
// unless s_l > c = sqrt(2 log n_l): beyond, the mean is that of keys too rare
// to be there, and log M_l = f q . m_l + s_l c (the random energy model,
// Derrida 1981).
//
// Where the M_l are known to be good their sum is the guess; else it is made
// from kDraws blocks of codes, of lists drawn by M_l^kTemper. Neither sees a
// heavy key that stands alone: the deviation is that of the guess, and k sqrt(V
// g) besides, V being the sum of the visited lists and g that of their farther
// half. k is learned from sample queries, keys and others that no key is near
// to, where all keys are eligible and where only some are: more lists are
// visited then, and the best of fewer keys is farther away.
class UnscoredMass {
 public:
  // Knows nothing: usable() is false.
  UnscoredMass() = default;

  // Scores all keys of `lists` 128 times, and as often again, or once for each
  // query that was asked. Deterministic for a seed and a kernel level. Error:
  // Cancelled.
  static absl::StatusOr<UnscoredMass> Learn(const InvertedLists& lists,
                                            const UnscoredMassOptions& options);

  // What it takes while it lasts, beside the lists. An asked_count of 0: it is
  // learned before anybody asks.
  static std::int64_t LearningBytes(std::int64_t list_count,
                                    std::int64_t asked_count);

  // Keys that stand for the covariance within lists.
  static constexpr std::int64_t kMaxDirections = 128;

  // Blocks of codes that a guess by draws reads, of 128 dimensions 1 KB each.
  static constexpr std::int64_t kDraws = 16;

  bool usable() const { return usable_; }

  // `parts`, at least one, have the means of the lists of Learn, and all or
  // some of their keys, or others like them: eligible_rate is then the share of
  // as many keys as Learn had. Rows that grow are taken to hold M_l / n_l each,
  // with a deviation of as much: they should be few. False if nothing can be
  // said: too few keys are eligible. The same bytes for the same arguments,
  // whatever ran before.
  bool Guess(std::span<const ListPart> parts, const VisitedMass& visited,
             UnscoredGuess& guess) const;

  // The two of which guesses are made; usable() is true. Sets log M_l of all
  // lists, as if all their keys were eligible; -infinity for visited and empty
  // ones.
  void PredictLists(const InvertedLists& lists, const VisitedMass& visited,
                    std::vector<float>& log_sums) const;
  // Log of k sqrt(V g).
  double LogUnseen(const VisitedMass& visited) const {
    return LogUnseen(visited, TrustAt(visited));
  }

  std::int64_t memory_bytes() const;

  void Save(ByteSink& sink) const;
  // `seed`: that of Learn's options.
  static UnscoredMass Load(ByteSource& source, std::int64_t list_count,
                           std::int64_t dim, std::uint64_t seed);

 private:
  friend class UnscoredMassLearner;

  // Sharpness is |q| f times the root mean square norm of the keys. Measures
  // are taken at 2, 4, 8, ..., 256; between two they lie on a line over the
  // logarithm. Below they are those of 2; above, errors of logs grow with the
  // sharpness, as gaps between logits do.
  static constexpr int kSharpnessCount = 8;
  static constexpr double kMinSharpness = 2;
  // Draws that must hold eligible keys for anything to be said.
  static constexpr std::int64_t kMinEligibleDraws = 8;

  // How far a guess may be trusted.
  struct Trust {
    // Of log(true sum / sum of M): its mean and its root mean square about it.
    double log_bias = 0;
    double log_deviation = 0;
    // Of k, which far beyond what was measured no double holds.
    double log_unseen_factor = kMinusInfinity;
  };
  // The same of queries whose visited lists hold so much: their log sum over
  // the sharpness, which where it is great is about the cosine of the best key.
  // Of keys that are not all eligible, what the sum would be if they were.
  struct Measure {
    double height = 0;
    double log_bias = 0;
    double log_deviation = 0;
    double unseen_factor = 0;  // k

    static Measure Mix(const Measure& a, const Measure& b, double share_of_b);
  };
  // Ascending by height, at least one; between two it lies on a line.
  using Measures = std::vector<Measure>;

  // What lists are predicted to hold, relative to exp(max); nothing if that is
  // nothing.
  struct ListExps {
    float max = kMinusInfinityF;
    double sum = 0;
    std::span<const float> of_list;

    bool empty() const { return of_list.empty(); }
  };

  // What lists with so many keys are predicted to hold, in logs.
  struct Prediction {
    std::span<const float> log_counts;
    std::span<const float> log_sums;

    float Max() const;
    // Good until the thread's next.
    ListExps Exps() const;
    void ExpsOfKeys(float power, float max, std::vector<float>& of_key) const;
  };

  // What the draws say of the sum, relative to exp(max).
  struct Draws {
    float max = 0;
    double sum = 0;
    double deviation = 0;  // of sum
    double sum_gap = 0;    // as SoftmaxPartition's
    double sum_square = 0;
    std::int64_t eligible_count = 0;  // draws that hold an eligible key

    // Whether they say anything.
    bool suffice() const { return eligible_count >= kMinEligibleDraws; }
  };

  std::int64_t direction_count() const {
    return static_cast<std::int64_t>(directions_.size()) / dim_;
  }
  // Once there are directions; `seed`: of the codes of the keys.
  void CodeDirections(std::uint64_t seed);
  Trust TrustAt(const VisitedMass& visited) const;
  static Measure MeasureAt(const Measures& measures, double height);
  static double HeightOf(const VisitedMass& visited, double sharpness);
  static double LogUnseen(const VisitedMass& visited, const Trust& trust);
  void Predict(const ListMeans& means, std::span<const float> log_counts,
               const VisitedMass& visited, std::vector<float>& log_sums) const;
  // Lists are taken to have as many keys as in the part that has the most of
  // them; and of several parts, or beside what grows, one at least. Good until
  // the thread's next.
  Prediction PredictParts(std::span<const ListPart> parts,
                          const VisitedMass& visited) const;
  // Adds what grows to a guess of the parts.
  static void AddGrowing(std::span<const ListPart> parts,
                         std::span<const GrowingPart> growing,
                         const Prediction& prediction, UnscoredGuess& guess);
  // log of the sum of their exps; -infinity if there is nothing.
  static double LogSum(std::span<const float> log_sums);
  // Sets the means of a guess whose lists hold what they are predicted to.
  void SetMeans(const ListMeans& means, const VisitedMass& visited,
                const Prediction& prediction, const ListExps& exps,
                UnscoredGuess& guess) const;
  // log of the sum over the keys of all parts; -infinity if there is nothing.
  static double LogPredictedSum(std::span<const ListPart> parts,
                                const Prediction& prediction,
                                const ListExps& exps);
  // log of the variance of that sum for scores from codes of 4 bits of the
  // means, which trust, learned by scores from floats, knows nothing of: much
  // where few lists hold most of the sum.
  static double LogScoreVariance(const ListMeans& means,
                                 const VisitedMass& visited,
                                 const ListExps& exps);
  // `most` is at most kDraws.
  static Draws Draw(std::span<const ListPart> parts, const VisitedMass& visited,
                    const Prediction& prediction, std::int64_t most);
  // Of keys that lie as Learn's did.
  static bool UsesPrediction(const VisitedMass& visited, const Trust& trust);
  bool LieAlike(const VisitedMass& visited) const;
  static UnscoredGuess GuessByPrediction(const VisitedMass& visited,
                                         double log_predicted,
                                         const Trust& trust);
  static UnscoredGuess GuessByDraws(const VisitedMass& visited,
                                    const Draws& draws, const Trust& trust);

  bool usable_ = false;
  double key_norm_ = 0;             // root mean square
  double square_distance_ = 0;      // of the keys that it was learned of
  std::vector<float> variances_;    // [lists], v
  std::vector<float> mean_shares_;  // [lists], a / |m|^2
  // Rows x with x'x / row count = W: keys less their lists' means.
  AlignedBuffer<float> directions_;
  KeyCodes direction_codes_;  // a quarter of the bytes
  std::int64_t dim_ = 0;
  std::vector<Measures> measures_;  // [kLearnedRates, kSharpnessCount]
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_MASS_UNSCORED_MASS_H_
