#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <random>
#include <utility>

#include "core/attention/softmax/log_add.h"
#include "core/base/bitmap.h"
#include "core/base/minus_infinity.h"
#include "core/base/normal_deviations.h"
#include "core/base/spare_time.h"
#include "core/kernels/kernels.h"
#include "core/kernels/select.h"
#include "core/shortlist/builds/for_each_part.h"
#include "core/shortlist/builds/guard_build.h"
#include "core/shortlist/mass/unscored_mass.h"

namespace attendant {
namespace {

// Number of keys that represent the covariance within lists.
constexpr std::int64_t kDirections = UnscoredMass::kMaxDirections;
// Number of sample queries of each kind.
constexpr std::int64_t kTrialQueries = 128;
// Trust is learned from windows of kWindow trials that are adjacent in height;
// windows are kWindowStep trials apart.
constexpr std::size_t kWindow = 128;
constexpr std::size_t kWindowStep = 32;
constexpr std::size_t kMinTrials = 16;
// Share of the trials whose intervals are to hold.
constexpr double kCoverage = 0.95;
// Draws of a trial if all keys are eligible: fewer than a guess makes, so that
// k also holds for queries that are somewhat unlike any sample.
constexpr std::int64_t kTrialDraws = 9;
// Least values that are learned, whatever the few trials say.
constexpr double kMinLogDeviation = 0.002;
constexpr double kMinUnseenFactor = 0.003;
constexpr std::int64_t kPassKeys = 1024;
constexpr std::int64_t kBlockQueries = 64;

}  // namespace

class UnscoredMassLearner {
 public:
  UnscoredMassLearner(const InvertedLists& lists,
                      const UnscoredMassOptions& options)
      : lists_(lists), options_(options), random_(options.seed) {
    mass_.square_distance_ = options.square_distance;
  }

  absl::StatusOr<UnscoredMass> Run() {
    if (options_.probe_counts[0] >= lists_.list_count() ||
        !lists_.codes.usable()) {
      return UnscoredMass();
    }
    if (options_.lists_known != nullptr) {
      TakeOver(*options_.lists_known);
    } else {
      Summarise();
    }
    if (!(mass_.key_norm_ > 0)) return UnscoredMass();
    DrawQueries();
    if (!SumLists()) return BuildCancelled();
    mass_.usable_ = Measure();
    return std::move(mass_);
  }

 private:
  using Measures = UnscoredMass::Measures;
  using Trust = UnscoredMass::Trust;
  static constexpr std::size_t kSharpnessCount = UnscoredMass::kSharpnessCount;

  // A sample query at one sharpness.
  struct Trial {
    VisitedMass visited;
    double sharpness = 1;
    double log_rest = kMinusInfinity;  // true value
    double log_predicted = kMinusInfinity;
    UnscoredMass::Draws draws;

    // Predictions are of all keys, eligible or not.
    double LogRatio() const {
      return log_rest - log_predicted - std::log(visited.eligible_rate);
    }
    double Height() const { return UnscoredMass::HeightOf(visited, sharpness); }
  };
  using Trials = std::span<const Trial>;

  float FactorOfKey(std::int64_t position) const {
    return options_.score_kind == ScoreKind::kCosine
               ? lists_.inverse_norms[position]
               : 1;
  }
  std::span<const float> Key(std::int64_t position) const {
    return lists_.key_view().Row(position);
  }
  std::span<const float> Mean(std::int64_t list) const {
    return {lists_.means->means.data() + list * lists_.dim,
            static_cast<std::size_t>(lists_.dim)};
  }
  std::int64_t AnyKey() {
    return static_cast<std::int64_t>(
        random_() % static_cast<std::uint64_t>(lists_.key_count()));
  }
  std::span<const float> Query(std::size_t i) const {
    const auto dim = static_cast<std::size_t>(lists_.dim);
    return std::span(queries_).subspan(i * dim, dim);
  }
  // Returns the logs of sums by sharpness.
  float* LogSums(int rate, std::size_t query, std::int64_t list) {
    const std::int64_t of_query =
        rate * static_cast<std::int64_t>(selves_.size()) +
        static_cast<std::int64_t>(query);
    return log_sums_.data() + (of_query * lists_.list_count() + list) *
                                  static_cast<std::int64_t>(kSharpnessCount);
  }
  // Returns the stride of eligible keys: the first of every such number of keys
  // is eligible.
  static std::int64_t StrideOf(int rate) {
    return std::int64_t{1} << (2 * rate);
  }

  // Sets `rest` to the key minus its list's mean and minus its component along
  // the mean. Returns the square of that component.
  double Split(std::int64_t list, double mean_norm, std::int64_t position,
               std::vector<double>& rest) const {
    const std::span<const float> key = Key(position);
    const std::span<const float> mean = Mean(list);
    const double factor = FactorOfKey(position);
    double product = 0;
    for (std::size_t d = 0; d < rest.size(); ++d) {
      rest[d] = factor * key[d] - mean[d];
      product += rest[d] * mean[d];
    }
    if (mean_norm == 0) return 0;
    const double share = product / (mean_norm * mean_norm);
    for (std::size_t d = 0; d < rest.size(); ++d) rest[d] -= share * mean[d];
    return share * product;
  }

  static double SquareNorm(const std::vector<double>& vector) {
    double sum = 0;
    for (const double component : vector) sum += component * component;
    return sum;
  }

  // Sums over the keys of a list.
  struct KeySums {
    double along = 0;  // squares of components along the list's mean
    double rest = 0;   // squares of the rest
  };

  void TakeOver(const UnscoredMass& known) {
    mass_.dim_ = known.dim_;
    mass_.key_norm_ = known.key_norm_;
    mass_.variances_ = known.variances_;
    mass_.mean_shares_ = known.mean_shares_;
    mass_.directions_ = AlignedBuffer<float>(known.directions_.size());
    std::ranges::copy(known.directions_.span(), mass_.directions_.data());
    mass_.CodeDirections(options_.seed);
  }

  void Summarise() {
    const auto list_count = static_cast<std::size_t>(lists_.list_count());
    std::vector<KeySums> sums(list_count);
    ForEachPart(lists_.key_count(), options_.thread_count,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t l = lists_.ListFrom(begin);
                       l < lists_.ListFrom(end); ++l) {
                    MakeWay();
                    sums[l] = SumKeys(l);
                  }
                });
    double square_norm_sum = 0;
    for (std::size_t l = 0; l < list_count; ++l) {
      const double mean_norm = Norm(Mean(static_cast<std::int64_t>(l)));
      const auto count =
          static_cast<double>(lists_.offsets[l + 1] - lists_.offsets[l]);
      square_norm_sum +=
          sums[l].along + sums[l].rest + count * mean_norm * mean_norm;
      const bool flat = count == 0 || mean_norm == 0;
      mass_.variances_.push_back(
          count == 0 ? 0 : static_cast<float>(sums[l].rest / count));
      mass_.mean_shares_.push_back(
          flat ? 0
               : static_cast<float>(sums[l].along / count / mean_norm /
                                    mean_norm));
    }
    mass_.dim_ = lists_.dim;
    mass_.key_norm_ =
        std::sqrt(square_norm_sum / static_cast<double>(lists_.key_count()));
    ChooseDirections();
  }

  KeySums SumKeys(std::int64_t list) const {
    const double mean_norm = Norm(Mean(list));
    std::vector<double> rest(static_cast<std::size_t>(lists_.dim));
    KeySums sums;
    for (std::int64_t p = lists_.offsets[list];
         p < lists_.offsets[static_cast<std::size_t>(list) + 1]; ++p) {
      sums.along += Split(list, mean_norm, p, rest);
      sums.rest += SquareNorm(rest);
    }
    return sums;
  }

  // Chooses as directions those in which keys at equal intervals lie from their
  // lists' means.
  void ChooseDirections() {
    const std::int64_t key_count = lists_.key_count();
    const auto dim = static_cast<std::size_t>(lists_.dim);
    const std::int64_t count = std::min(kDirections, key_count);
    mass_.directions_ =
        AlignedBuffer<float>(static_cast<std::size_t>(count) * dim);
    std::vector<double> rest(dim);
    double square_sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t position = (i * key_count + count - 1) / count;
      const std::int64_t list = lists_.ListAt(position);
      Split(list, Norm(Mean(list)), position, rest);
      std::copy(rest.begin(), rest.end(),
                mass_.directions_.data() + static_cast<std::size_t>(i) * dim);
      square_sum += SquareNorm(rest);
    }
    // Gives the mean of x'x trace 1.
    const double mean_square = square_sum / static_cast<double>(count);
    const auto scale =
        static_cast<float>(mean_square > 0 ? 1 / std::sqrt(mean_square) : 0);
    for (float& component : mass_.directions_.span()) component *= scale;
    mass_.CodeDirections(options_.seed);
  }

  // Draws queries: those that were asked; otherwise keys, which are left out of
  // their own sums. In addition, vectors between a random direction and a key
  // with permuted components, which need not be near to any key.
  void DrawQueries() {
    const auto dim = static_cast<std::size_t>(lists_.dim);
    std::vector<float> query(dim);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    const auto push = [&](std::int64_t self) {
      const double norm = Norm(query);
      if (!(norm > 0)) return;
      for (float& component : query) {
        component = static_cast<float>(component / norm);
      }
      queries_.insert(queries_.end(), query.begin(), query.end());
      selves_.push_back(self);
    };
    for (std::size_t at = 0; at < options_.asked.size(); at += dim) {
      std::ranges::copy(options_.asked.subspan(at, dim), query.begin());
      push(-1);
    }
    for (std::int64_t i = 0; options_.asked.empty() && i < kTrialQueries; ++i) {
      const std::int64_t position = AnyKey();
      std::copy_n(Key(position).begin(), dim, query.begin());
      push(position);
    }
    for (std::int64_t i = 0; i < kTrialQueries; ++i) {
      std::copy_n(Key(AnyKey()).begin(), dim, query.begin());
      const double unit = Norm(query) / std::sqrt(static_cast<double>(dim));
      std::ranges::shuffle(query, random_);
      const double share = uniform(random_);
      for (float& component : query) {
        component = static_cast<float>((1 - share) * component +
                                       share * unit * normal(random_));
      }
      push(-1);
    }
  }

  // Queries have norm 1.
  double LogitFactor(std::size_t sharpness) const {
    return UnscoredMass::kMinSharpness *
           std::exp2(static_cast<double>(sharpness)) / mass_.key_norm_;
  }

  // Returns false if cancelled.
  bool SumLists() {
    log_sums_.assign(kLearnedRates * selves_.size() * kSharpnessCount *
                         static_cast<std::size_t>(lists_.list_count()),
                     kMinusInfinityF);
    // The parts have equal numbers of keys.
    ForEachPart(lists_.key_count(), options_.thread_count,
                [this](std::int64_t begin, std::int64_t end) {
                  SumLists(lists_.ListFrom(begin), lists_.ListFrom(end));
                });
    return !IsCancelled(options_.cancelled);
  }

  // Takes a few queries at a time, so that their products stay in the
  // second-level cache.
  void SumLists(std::int64_t list_begin, std::int64_t list_end) {
    const auto query_count = static_cast<std::int64_t>(selves_.size());
    std::vector<float> products(
        static_cast<std::size_t>(kBlockQueries * kPassKeys));
    std::vector<float> eligible(static_cast<std::size_t>(kPassKeys));
    for (std::int64_t l = list_begin;
         l < list_end && !IsCancelled(options_.cancelled); ++l) {
      const std::int64_t end = lists_.offsets[static_cast<std::size_t>(l) + 1];
      std::int64_t count = 0;
      for (std::int64_t begin = lists_.offsets[l]; begin < end;
           begin += count) {
        count = std::min(kPassKeys, end - begin);
        for (std::int64_t first = 0; first < query_count;
             first += kBlockQueries) {
          MakeWay();
          SumBlock(l, begin, count, first,
                   std::min(kBlockQueries, query_count - first), products,
                   eligible);
        }
      }
    }
  }

  // Adds key_count keys of the list, from position `begin` on, to the sums of
  // query_count queries, from `first` on. `products` and `eligible` are
  // scratch.
  void SumBlock(std::int64_t list, std::int64_t begin, std::int64_t key_count,
                std::int64_t first, std::int64_t query_count,
                std::vector<float>& products, std::vector<float>& eligible) {
    ActiveKernels().DotRowsMulti(queries_.data() + first * lists_.dim,
                                 query_count,
                                 lists_.keys.runs() + begin * lists_.dim,
                                 key_count, lists_.dim, products.data());
    for (std::int64_t i = 0; i < query_count; ++i) {
      const auto q = static_cast<std::size_t>(first + i);
      const std::span<float> of_query(products.data() + i * key_count,
                                      static_cast<std::size_t>(key_count));
      ToLogits(q, begin, of_query);
      for (int rate = 0; rate < kLearnedRates; ++rate) {
        AddKeys(rate, q, list, EligibleOf(rate, begin, of_query, eligible));
      }
    }
  }

  // Turns products of the query with keys from `begin` on into logits of the
  // least sharpness; leaves out the key that the query was made of.
  void ToLogits(std::size_t query, std::int64_t begin,
                std::span<float> products) const {
    const auto count = static_cast<std::int64_t>(products.size());
    const auto factor = static_cast<float>(LogitFactor(0));
    if (options_.score_kind == ScoreKind::kCosine) {
      const float* norms = lists_.inverse_norms.data() + begin;
      for (std::int64_t i = 0; i < count; ++i) {
        products[i] *= factor * norms[i];
      }
    } else {
      for (float& product : products) product *= factor;
    }
    const std::int64_t self = selves_[query] - begin;
    if (selves_[query] >= 0 && 0 <= self && self < count) {
      products[self] = kMinusInfinityF;
    }
  }

  // Copies the logits of the eligible keys to `room` and returns them.
  static std::span<float> EligibleOf(int rate, std::int64_t begin,
                                     std::span<const float> logits,
                                     std::vector<float>& room) {
    const std::int64_t stride = StrideOf(rate);
    std::size_t count = 0;
    for (std::int64_t i = (stride - begin % stride) % stride;
         i < static_cast<std::int64_t>(logits.size()); i += stride) {
      room[count++] = logits[i];
    }
    return std::span(room).first(count);
  }

  // Adds keys of the list, with logits of the least sharpness, which are
  // overwritten. Every sharpness is twice the previous one, so its exps are the
  // squares of the previous exps, with a relative error of 2^-21 x 2^7.
  void AddKeys(int rate, std::size_t query, std::int64_t list,
               std::span<float> logits) {
    static_assert(kSharpnessCount == kPowers + 1);
    const auto count = static_cast<std::int64_t>(logits.size());
    if (count == 0) return;
    double max = ActiveKernels().Max(logits.data(), count);
    if (max == kMinusInfinity) return;
    std::array<double, kSharpnessCount> sums;
    sums[0] = ActiveKernels()
                  .SumExps(logits.data(), count, static_cast<float>(max),
                           logits.data())
                  .sum;
    ActiveKernels().SumPowers(logits.data(), count, sums.data() + 1);
    float* log_sums = LogSums(rate, query, list);
    for (std::size_t s = 0; s < kSharpnessCount; ++s) {
      const double log_sum = max + std::log(sums[s]);
      log_sums[s] = static_cast<float>(log_sums[s] == kMinusInfinityF
                                           ? log_sum
                                           : LogAdd(log_sums[s], log_sum));
      max *= 2;
    }
  }

  // Returns false if nothing can be measured: codes are not usable, or lists
  // are empty.
  bool Measure() {
    for (int rate = 0; rate < kLearnedRates; ++rate) {
      if (!MeasureRate(rate)) return false;
    }
    return true;
  }

  bool MeasureRate(int rate) {
    const Bitmap mask = EligibleRowsOf(rate);
    ScanQuery masked;
    masked.row_end = static_cast<RowIndex>(mask.size());
    masked.allowed = &mask;
    const EligibleRows eligible(masked);
    const ListPart parts[] = {{&lists_, rate == 0 ? nullptr : &eligible}};
    // By sharpness.
    std::vector<std::vector<Trial>> trials(kSharpnessCount,
                                           std::vector<Trial>(selves_.size()));
    std::atomic<bool> coded = true;
    ForEachPart(static_cast<std::int64_t>(selves_.size()),
                options_.thread_count,
                [&](std::int64_t begin, std::int64_t end) {
                  if (!TryQueries(rate, parts, begin, end, trials)) {
                    coded = false;
                  }
                });
    if (!coded) return false;
    for (std::vector<Trial>& of_sharpness : trials) {
      Measures measures = MeasureTrials(std::move(of_sharpness));
      if (measures.empty()) {
        // Hardly any trial visited anything, as may happen if most keys are not
        // eligible.
        if (rate == 0) return false;
        measures = mass_.measures_[mass_.measures_.size() - kSharpnessCount];
      }
      mass_.measures_.push_back(std::move(measures));
    }
    return true;
  }

  // Tries queries from `begin` to `end` at all sharpnesses. Returns false if
  // codes are not usable for one of them.
  bool TryQueries(int rate, std::span<const ListPart> parts, std::int64_t begin,
                  std::int64_t end, std::vector<std::vector<Trial>>& trials) {
    CodedQuery coded;
    std::vector<float> scores;
    std::vector<std::int32_t> chosen;
    std::vector<float> log_sums(static_cast<std::size_t>(lists_.list_count()));
    for (auto q = static_cast<std::size_t>(begin);
         q < static_cast<std::size_t>(end); ++q) {
      MakeWay();
      lists_.means->ScoreLists(Query(q), scores);
      Choose(scores, rate, chosen);
      for (std::size_t s = 0; s < kSharpnessCount; ++s) {
        if (!coded.Encode(lists_.codes, Query(q), LogitFactor(s))) return false;
        Trial& trial = trials[s][q];
        trial.sharpness = LogitFactor(s) * mass_.key_norm_;
        trial.visited = {.query = Query(q),
                         .logit_factor = LogitFactor(s),
                         .coded = &coded,
                         .scores = scores,
                         .lists = chosen,
                         .log_sum = kMinusInfinity,
                         .log_farther_sum = kMinusInfinity,
                         .masked = rate != 0,
                         .eligible_rate = LearnedRate(rate),
                         .rest_count = 1};
        for (std::size_t l = 0; l < log_sums.size(); ++l) {
          log_sums[l] = LogSums(rate, q, static_cast<std::int64_t>(l))[s];
        }
        SumVisited(log_sums, trial);
        const UnscoredMass::Prediction prediction =
            mass_.PredictParts(parts, trial.visited);
        trial.log_predicted =
            UnscoredMass::LogPredictedSum(parts, prediction, prediction.Exps());
        trial.draws =
            UnscoredMass::Draw(parts, trial.visited, prediction,
                               rate == 0 ? kTrialDraws : UnscoredMass::kDraws);
        // The objects that these refer to are reused for the next query.
        trial.visited.coded = nullptr;
        trial.visited.scores = {};
        trial.visited.lists = {};
      }
    }
    return true;
  }

  // Chooses the lists that a query visits. If all lists are visited, nothing is
  // guessed.
  void Choose(std::span<const float> scores, int rate,
              std::vector<std::int32_t>& chosen) const {
    std::int64_t count = options_.probe_counts[rate];
    if (rate == 0 && options_.margin) {
      const Kernels& kernels = ActiveKernels();
      const std::int64_t list_count = lists_.list_count();
      count = kernels.CountAtLeast(
          scores.data(), list_count,
          lists_.means->ExpectedScore(scores, options_.sought_count) -
              options_.margin->At(kernels.Max(scores.data(), list_count)));
    }
    SelectBest(scores,
               std::clamp<std::int64_t>(count, 1, lists_.list_count() - 1),
               chosen);
  }

  Bitmap EligibleRowsOf(int rate) const {
    const auto last = std::ranges::max_element(lists_.rows);
    Bitmap rows(last == lists_.rows.end() ? 0 : *last + 1);
    for (std::int64_t p = 0; p < lists_.key_count(); p += StrideOf(rate)) {
      rows.Set(lists_.rows[p]);
    }
    return rows;
  }

  static void SumVisited(std::span<const float> log_sums, Trial& trial) {
    VisitedMass& visited = trial.visited;
    const float farther = FartherScore(visited.scores, visited.lists);
    std::vector<float> rest(log_sums.begin(), log_sums.end());
    for (const std::int32_t list : visited.lists) {
      const auto l = static_cast<std::size_t>(list);
      rest[l] = kMinusInfinityF;
      visited.log_sum = LogAdd(visited.log_sum, log_sums[l]);
      if (visited.scores[l] <= farther) {
        visited.log_farther_sum = LogAdd(visited.log_farther_sum, log_sums[l]);
      }
    }
    trial.log_rest = UnscoredMass::LogSum(rest);
  }

  // Measures trials that are adjacent in height. Returns an empty list if there
  // are too few.
  static Measures MeasureTrials(std::vector<Trial> trials) {
    std::erase_if(trials, [](const Trial& trial) {
      return !std::isfinite(trial.Height());
    });
    if (trials.size() < kMinTrials) return {};
    std::ranges::sort(trials, [](const Trial& a, const Trial& b) {
      return a.Height() < b.Height();
    });
    Measures measures;
    const std::size_t width = std::min<std::size_t>(trials.size(), kWindow);
    for (std::size_t begin = 0; begin + width <= trials.size();
         begin += kWindowStep) {
      const Trials window = Trials(trials).subspan(begin, width);
      const Trials near = window.subspan(width / 4, width / 2);
      Trust trust = {.log_bias = MeanLogRatio(near)};
      trust.log_deviation =
          std::max(kMinLogDeviation, LogDeviation(near, trust.log_bias));
      measures.push_back({window[width / 2].Height(), trust.log_bias,
                          trust.log_deviation, UnseenFactorOf(window, trust)});
    }
    return measures;
  }

  static double MeanLogRatio(Trials trials) {
    double sum = 0;
    double count = 0;
    for (const Trial& trial : trials) {
      if (!std::isfinite(trial.LogRatio())) continue;
      sum += trial.LogRatio();
      ++count;
    }
    return count == 0 ? 0 : sum / count;
  }

  // Returns the deviation of one more ratio from `bias`, the mean of the
  // trials' ratios, such that 1.96 deviations hold 95 % (Student's
  // distribution, by its first terms).
  static double LogDeviation(Trials trials, double bias) {
    double square_sum = 0;
    double count = 0;
    for (const Trial& trial : trials) {
      const double off = trial.LogRatio() - bias;
      if (!std::isfinite(off)) continue;
      square_sum += off * off;
      ++count;
    }
    if (count < 2) return std::sqrt(square_sum);
    const double freedom = count - 1;
    const double student =
        1 + (kNormalDeviations * kNormalDeviations + 1) / (4 * freedom);
    return student * std::sqrt(square_sum / freedom * (1 + 1 / count));
  }

  // Returns the factor with which the intervals of a share kCoverage of the
  // trials hold.
  static double UnseenFactorOf(Trials trials, const Trust& trust) {
    std::vector<double> needed;
    for (const Trial& trial : trials) {
      if (trial.draws.suffice() ||
          UnscoredMass::UsesPrediction(trial.visited, trust)) {
        needed.push_back(NeededFactor(trial, trust));
      }
    }
    if (needed.empty()) return kMinUnseenFactor;
    std::ranges::sort(needed);
    // Each of n + 1 numbers from the same source is equally likely to be the
    // greatest.
    const auto count = static_cast<double>(needed.size());
    const double at = std::min(count, std::ceil(kCoverage * (count + 1)));
    return std::max(kMinUnseenFactor, needed[static_cast<std::size_t>(at) - 1]);
  }

  // Returns the factor with which the trial's interval just holds the truth.
  static double NeededFactor(const Trial& trial, const Trust& known) {
    const VisitedMass& visited = trial.visited;
    const UnscoredGuess guess =
        UnscoredMass::UsesPrediction(visited, known)
            ? UnscoredMass::GuessByPrediction(visited, trial.log_predicted,
                                              known)
            : UnscoredMass::GuessByDraws(visited, trial.draws, known);
    const double log_guess = LogAdd(visited.log_sum, guess.log_sum);
    const double error =
        std::abs(log_guess - LogAdd(visited.log_sum, trial.log_rest));
    // If a log-normal distribution has deviation r as a share of its guess, its
    // interval is 1.96 s + s^2 / 2 each way, with s^2 = log(1 + r^2).
    const double spread =
        std::sqrt(kNormalDeviations * kNormalDeviations + 2 * error) -
        kNormalDeviations;
    const double deviation = std::sqrt(std::expm1(spread * spread));
    const double lacking =
        deviation - std::exp(guess.log_variance / 2 - log_guess);
    const double log_unit = (visited.log_sum + visited.log_farther_sum) / 2;
    if (!(lacking > 0) || log_unit == kMinusInfinity) return 0;
    return lacking * std::exp(log_guess - log_unit);
  }

  const InvertedLists& lists_;
  const UnscoredMassOptions& options_;
  std::mt19937_64 random_;
  UnscoredMass mass_;
  std::vector<float> queries_;        // [selves_.size(), dim]
  std::vector<std::int64_t> selves_;  // positions of keys; -1: not a key
  // [kLearnedRates, queries, lists, kSharpnessCount]
  std::vector<float> log_sums_;
};

std::int64_t UnscoredMass::LearningBytes(std::int64_t list_count,
                                         std::int64_t asked_count) {
  const std::int64_t query_count =
      kTrialQueries + (asked_count > 0 ? asked_count : kTrialQueries);
  return kLearnedRates * query_count * list_count * kSharpnessCount *
         static_cast<std::int64_t>(sizeof(float));
}

absl::StatusOr<UnscoredMass> UnscoredMass::Learn(
    const InvertedLists& lists, const UnscoredMassOptions& options) {
  return UnscoredMassLearner(lists, options).Run();
}

}  // namespace attendant
