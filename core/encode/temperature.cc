#include "core/encode/temperature.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/minus_infinity.h"
#include "core/base/status.h"
#include "core/encode/golden_section.h"

namespace attendant {
namespace {

using RowMatrix =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The grid of temperatures: it starts at 32 times the greatest similarity
// (weights equal within 1/16) and halves from there.
constexpr int kGridCount = 26;
constexpr double kGridTop = 32;
// The width of the last bracket: 1 % of a temperature.
constexpr double kLogTemperatureWidth = .01;
// The number of similarities held at a time.
constexpr std::int64_t kBlockElements = std::int64_t{1} << 21;
// Beyond this, float similarities and sums over a dimension may overflow.
constexpr double kGreatestSimilarity = 1e37;
// Below this, 1 / temperature may overflow.
constexpr double kMinSimilarity = 1e-30;
// exp of anything below would be a denormal: a hundred times slower, and as
// good as 0.
constexpr float kMinExponent = -80;
// Sums of this many floats lose at most about 1e-5 before they are added to a
// double.
constexpr Eigen::Index kSumBlock = 512;

// A way of scoring and combining, and its search.
struct Candidate {
  ScoreKind score_kind = ScoreKind::kDot;
  CombineKind combine_kind = CombineKind::kSum;
  std::vector<float> factors;        // one per choice, scales the raw q.k
  double greatest = 0;               // bound of |similarity x scale|
  std::vector<double> temperatures;  // for the next pass
  std::vector<double> negative_log_likelihood;  // a pass's sum per temperature
};

// Everything that does not depend on the temperature.
struct Problem {
  Eigen::Map<const RowMatrix> keys;
  Eigen::ArrayXf inverse_key_norms;
  double greatest_key_norm = 0;
  std::span<const Choice> choices;
  RowMatrix queries;  // [choices, dim], plain sums
  // The share of each choice that is taken as random.
  double random_share = 0;
};

std::string ChoiceField(std::size_t choice, absl::string_view name) {
  return absl::StrCat("choices[", choice, "].", name);
}

absl::Status ValidateRow(std::int32_t row, const MatrixView& keys,
                         const std::string& field) {
  if (row >= 0 && row < keys.row_count) return absl::OkStatus();
  return InvalidField(field, absl::StrCat(row),
                      absl::StrCat("a row from 0 to ", keys.row_count - 1));
}

absl::Status ValidateChoice(const Choice& choice, std::size_t i,
                            const MatrixView& keys) {
  ATTENDANT_RETURN_IF_ERROR(
      ValidateRow(choice.target, keys, ChoiceField(i, "target")));
  for (const std::int32_t row : choice.history) {
    ATTENDANT_RETURN_IF_ERROR(
        ValidateRow(row, keys, ChoiceField(i, "history")));
    if (row == choice.target) {
      return InvalidField(ChoiceField(i, "target"),
                          absl::StrCat(row, ", which is in the history"),
                          "an item that is not masked");
    }
  }
  const std::size_t weight_count = choice.history_weights.size();
  if (weight_count != 0 && weight_count != choice.history.size()) {
    return InvalidField(ChoiceField(i, "history_weights"),
                        absl::StrCat(weight_count, " weights"),
                        absl::StrCat("none or ", choice.history.size()));
  }
  for (const double weight : choice.history_weights) {
    if (std::isfinite(weight)) continue;
    return InvalidField(ChoiceField(i, "history_weights"), absl::StrCat(weight),
                        "finite numbers");
  }
  const auto query_size = static_cast<std::int64_t>(choice.query.size());
  if (query_size != 0 && query_size != keys.dim) {
    return InvalidField(ChoiceField(i, "query"),
                        absl::StrCat(query_size, " values"),
                        absl::StrCat("none or ", keys.dim));
  }
  return ValidateFinite(choice.query, ChoiceField(i, "query"));
}

absl::Status Validate(const MatrixView& keys, std::span<const Choice> choices) {
  if (keys.row_count < 1 || keys.dim < 1) {
    return InvalidField(
        "keys", absl::StrCat(keys.row_count, " x ", keys.dim, " values"),
        "at least one row of at least one value");
  }
  if (choices.empty()) return InvalidField("choices", "none", "at least one");
  for (std::int64_t row = 0; row < keys.row_count; ++row) {
    ATTENDANT_RETURN_IF_ERROR(
        ValidateFinite(keys.Row(row), absl::StrCat("keys[", row, "]")));
  }
  for (std::size_t i = 0; i < choices.size(); ++i) {
    ATTENDANT_RETURN_IF_ERROR(ValidateChoice(choices[i], i, keys));
  }
  return absl::OkStatus();
}

// Stores the weighted sum of the history, or the given query, to `query`.
void FillQuery(const Choice& choice, const MatrixView& keys,
               std::span<float> query) {
  if (!choice.query.empty()) {
    std::copy(choice.query.begin(), choice.query.end(), query.begin());
    return;
  }
  std::vector<double> sum(query.size());
  for (std::size_t i = 0; i < choice.history.size(); ++i) {
    const double weight =
        choice.history_weights.empty() ? 1 : choice.history_weights[i];
    const std::span<const float> key = keys.Row(choice.history[i]);
    for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += weight * key[d];
  }
  std::transform(sum.begin(), sum.end(), query.begin(),
                 [](double value) { return static_cast<float>(value); });
}

std::span<float> RowOf(RowMatrix& matrix, Eigen::Index row) {
  return {matrix.row(row).data(), static_cast<std::size_t>(matrix.cols())};
}

// Returns the name of the first key or query of norm 0, or nothing.
std::optional<std::string> ZeroNorm(Problem& problem) {
  for (Eigen::Index row = 0; row < problem.keys.rows(); ++row) {
    if (!std::isfinite(problem.inverse_key_norms[row])) {
      return absl::StrCat("keys[", row, "]");
    }
  }
  for (Eigen::Index i = 0; i < problem.queries.rows(); ++i) {
    if (Norm(RowOf(problem.queries, i)) == 0) {
      return ChoiceField(static_cast<std::size_t>(i), "query");
    }
  }
  return std::nullopt;
}

// A combined query is the plain sum times a factor, and so is a similarity.
Candidate MakeCandidate(ScoreKind score_kind, CombineKind combine_kind,
                        Problem& problem) {
  Candidate candidate;
  candidate.score_kind = score_kind;
  candidate.combine_kind = combine_kind;
  const double scale = LogitFactor(score_kind, problem.keys.cols(), 1);
  const double greatest_key =
      score_kind == ScoreKind::kCosine ? 1 : problem.greatest_key_norm;
  std::vector<float> combined;
  for (Eigen::Index i = 0; i < problem.queries.rows(); ++i) {
    const std::span<float> sum = RowOf(problem.queries, i);
    const Choice& choice = problem.choices[i];
    const double norm = Norm(sum);
    double factor = scale;
    if (score_kind == ScoreKind::kCosine) {
      factor /= norm;
    } else if (choice.query.empty() && norm > 0) {
      combined.assign(sum.begin(), sum.end());
      Combine(combine_kind, static_cast<std::int64_t>(choice.history.size()),
              combined);
      factor *= Norm(combined) / norm;
    }
    candidate.factors.push_back(static_cast<float>(factor));
    candidate.greatest =
        std::max(candidate.greatest, factor * norm * greatest_key);
  }
  return candidate;
}

absl::StatusOr<std::vector<Candidate>> MakeCandidates(
    const DefaultsSearch& search, Problem& problem) {
  std::vector<ScoreKind> score_kinds = {ScoreKind::kDot, ScoreKind::kCosine};
  const std::optional<std::string> zero_norm = ZeroNorm(problem);
  if (search.score_kind.has_value()) {
    score_kinds = {*search.score_kind};
    if (zero_norm.has_value() && search.score_kind == ScoreKind::kCosine) {
      return InvalidField(*zero_norm, "norm 0", "norm > 0 for COSINE");
    }
  } else if (zero_norm.has_value()) {
    score_kinds = {ScoreKind::kDot};  // these keys don't suit COSINE
  }
  std::vector<CombineKind> combine_kinds = {
      CombineKind::kSum, CombineKind::kSumOverSqrtCount, CombineKind::kUnit};
  if (search.combine_kind.has_value()) combine_kinds = {*search.combine_kind};

  std::vector<Candidate> candidates;
  for (const ScoreKind score_kind : score_kinds) {
    for (const CombineKind combine_kind : combine_kinds) {
      candidates.push_back(MakeCandidate(score_kind, combine_kind, problem));
      // COSINE ignores a query's length, so all combinations are equal.
      if (score_kind == ScoreKind::kCosine) break;
    }
  }
  return candidates;
}

// Returns log sum exp of (logits - greatest) / temperature.
double LogSum(const Eigen::Ref<const Eigen::ArrayXf>& gaps,
              double temperature) {
  const auto factor = static_cast<float>(1 / temperature);
  double sum = 0;
  for (Eigen::Index from = 0; from < gaps.size(); from += kSumBlock) {
    const Eigen::Index count = std::min(kSumBlock, gaps.size() - from);
    sum += static_cast<double>(
        (gaps.segment(from, count) * factor).max(kMinExponent).exp().sum());
  }
  return std::log(sum);
}

// Returns the mean of the gaps that are not masked.
double MeanGap(const Eigen::Ref<const Eigen::ArrayXf>& gaps) {
  const auto is_open = gaps > kMinusInfinityF;
  return is_open.select(gaps, 0).cast<double>().sum() /
         static_cast<double>(is_open.count());
}

// Adds the negative log likelihood of a choice at every requested temperature.
// similarities: its raw q.k, with the history at -infinity.
void AddChoice(const Problem& problem, std::size_t choice,
               const Eigen::Ref<const Eigen::ArrayXf>& similarities,
               Eigen::ArrayXf& gaps, Candidate& candidate) {
  const float factor = candidate.factors[choice];
  if (candidate.score_kind == ScoreKind::kCosine) {
    gaps = similarities * problem.inverse_key_norms * factor;
  } else if (factor > 0) {
    gaps = similarities * factor;
  } else {  // a zero query: keep the masks, which 0 x infinity would lose
    gaps = similarities;
  }
  gaps -= gaps.maxCoeff();
  double chosen_gap = gaps[problem.choices[choice].target];
  if (problem.random_share > 0) {
    chosen_gap += problem.random_share * (MeanGap(gaps) - chosen_gap);
  }
  for (std::size_t t = 0; t < candidate.temperatures.size(); ++t) {
    const double temperature = candidate.temperatures[t];
    candidate.negative_log_likelihood[t] +=
        LogSum(gaps, temperature) - chosen_gap / temperature;
  }
}

// Fills negative_log_likelihood of all candidates in one pass over the
// similarities.
void Pass(const Problem& problem, std::vector<Candidate>& candidates) {
  for (Candidate& candidate : candidates) {
    candidate.negative_log_likelihood.assign(candidate.temperatures.size(), 0);
  }
  const Eigen::Index choice_count = problem.queries.rows();
  const Eigen::Index block = std::clamp<Eigen::Index>(
      kBlockElements / problem.keys.rows(), 1, choice_count);
  RowMatrix similarities(block, problem.keys.rows());
  Eigen::ArrayXf gaps;
  for (Eigen::Index from = 0; from < choice_count; from += block) {
    const Eigen::Index count = std::min(block, choice_count - from);
    similarities.topRows(count).noalias() =
        problem.queries.middleRows(from, count) * problem.keys.transpose();
    for (Eigen::Index i = 0; i < count; ++i) {
      const auto choice = static_cast<std::size_t>(from + i);
      Eigen::Map<Eigen::ArrayXf> row(similarities.row(i).data(),
                                     similarities.cols());
      for (const std::int32_t masked : problem.choices[choice].history) {
        row[masked] = kMinusInfinityF;
      }
      for (Candidate& candidate : candidates) {
        AddChoice(problem, choice, row, gaps, candidate);
      }
    }
  }
  for (Candidate& candidate : candidates) {
    for (double& sum : candidate.negative_log_likelihood) {
      sum /= static_cast<double>(choice_count);
    }
  }
}

// Returns a search between the neighbours of the best grid point.
GoldenSection Bracket(const Candidate& candidate) {
  const std::vector<double>& values = candidate.negative_log_likelihood;
  const auto best = static_cast<std::size_t>(std::ranges::min_element(values) -
                                             values.begin());
  const std::size_t above = best == 0 ? 0 : best - 1;
  const std::size_t below = std::min(best + 1, values.size() - 1);
  return GoldenSection(std::log(candidate.temperatures[below]),
                       std::log(candidate.temperatures[above]),
                       std::log(candidate.temperatures[best]), values[best]);
}

// Runs all searches at once, with one temperature each per pass.
std::vector<GoldenSection> Search(const Problem& problem,
                                  std::vector<Candidate>& candidates) {
  for (Candidate& candidate : candidates) {
    // If all similarities are 0, every temperature is equally good.
    const double greatest =
        candidate.greatest > kMinSimilarity ? candidate.greatest : 1;
    for (int i = 0; i < kGridCount; ++i) {
      candidate.temperatures.push_back(std::ldexp(kGridTop * greatest, -i));
    }
  }
  Pass(problem, candidates);
  std::vector<GoldenSection> searches;
  for (const Candidate& candidate : candidates) {
    searches.push_back(Bracket(candidate));
  }
  const auto done = [](const GoldenSection& search) {
    return search.Width() <= kLogTemperatureWidth;
  };
  while (!std::ranges::all_of(searches, done)) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      candidates[i].temperatures = {std::exp(searches[i].Next())};
    }
    Pass(problem, candidates);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      searches[i].Tell(candidates[i].negative_log_likelihood[0]);
    }
  }
  return searches;
}

}  // namespace

absl::StatusOr<AttentionDefaults> FitDefaults(MatrixView keys,
                                              std::span<const Choice> choices,
                                              const DefaultsSearch& search) {
  ATTENDANT_RETURN_IF_ERROR(Validate(keys, choices));
  const auto choice_count = static_cast<std::int64_t>(choices.size());
  Problem problem{
      .keys = Eigen::Map<const RowMatrix>(keys.data, keys.row_count, keys.dim),
      .inverse_key_norms = Eigen::ArrayXf(keys.row_count),
      .greatest_key_norm = 0,
      .choices = choices,
      .queries = RowMatrix(choice_count, keys.dim),
      .random_share = 1 / (1 + static_cast<double>(choice_count))};
  for (std::int64_t row = 0; row < keys.row_count; ++row) {
    const double norm = Norm(keys.Row(row));
    problem.inverse_key_norms[row] = static_cast<float>(1 / norm);
    problem.greatest_key_norm = std::max(problem.greatest_key_norm, norm);
  }
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const std::span<float> query =
        RowOf(problem.queries, static_cast<Eigen::Index>(i));
    FillQuery(choices[i], keys, query);
    if (!(Norm(query) * problem.greatest_key_norm <= kGreatestSimilarity)) {
      return InvalidField(ChoiceField(i, "query"), "similarities that overflow",
                          absl::StrCat("at most ", kGreatestSimilarity));
    }
  }
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<Candidate> candidates,
                             MakeCandidates(search, problem));
  const std::vector<GoldenSection> searches = Search(problem, candidates);

  std::size_t best = 0;
  for (std::size_t i = 1; i < searches.size(); ++i) {
    if (searches[i].best() < searches[best].best()) best = i;
  }
  // The search included a random choice; report the likelihood without it.
  std::vector<Candidate> found = {std::move(candidates[best])};
  found[0].temperatures = {std::exp(searches[best].best_at())};
  problem.random_share = 0;
  Pass(problem, found);
  return AttentionDefaults{
      .score_kind = found[0].score_kind,
      .combine_kind = found[0].combine_kind,
      .temperature = found[0].temperatures[0],
      .negative_log_likelihood = found[0].negative_log_likelihood[0],
      .uniform_negative_log_likelihood =
          std::log(static_cast<double>(keys.row_count)),
      .choice_count = choice_count};
}

}  // namespace attendant
