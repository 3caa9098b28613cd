#include "core/attention/rank_approximately.h"

#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/lsh_attention.h"
#include "core/attention/row_reduction.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Adds up what the heads of one candidate found, event by event.
class MeanWeights {
 public:
  explicit MeanWeights(std::int64_t event_count)
      : weights_(static_cast<std::size_t>(event_count)) {}

  // The k events of greatest mean weight, none of weight 0.
  std::vector<EventWeight> Best(const std::vector<LshFound>& heads,
                                std::size_t k) {
    std::vector<EventWeight> best;
    const double share = 1 / static_cast<double>(heads.size());
    for (const LshFound& head : heads) {
      for (std::size_t i = 0; i < head.positions.size(); ++i) {
        weights_[Index(head.positions[i])] += share * head.weights[i];
      }
    }
    for (const LshFound& head : heads) {
      for (const std::int32_t position : head.positions) {
        double& weight = weights_[Index(position)];
        // As another head has it too.
        if (weight > 0) best.push_back({position, weight});
        weight = 0;
      }
    }
    const std::size_t count = std::min(k, best.size());
    std::partial_sort(best.begin(),
                      best.begin() + static_cast<std::ptrdiff_t>(count),
                      best.end(), Better);
    best.resize(count);
    return best;
  }

 private:
  static std::size_t Index(std::int32_t position) {
    return static_cast<std::size_t>(position);
  }
  std::vector<double> weights_;  // [event_count], 0 between calls
};

absl::StatusOr<RankedInterests> RankByLsh(const RankInput& input,
                                          const MultiHeadInput& problem,
                                          const LshOptions& options) {
  LshAttention attention(problem, options);
  ATTENDANT_RETURN_IF_ERROR(attention.Load());
  const std::int64_t m = input.candidates.row_count;
  const std::int64_t output_dim = problem.output_dim();
  RankedInterests ranked;
  ranked.interests = {m, output_dim, {}};
  ranked.interests.data.resize(static_cast<std::size_t>(m * output_dim));
  MeanWeights mean_weights(input.keys.row_count);
  std::vector<LshFound> found;
  for (std::int64_t i = 0; i < m; ++i) {
    ATTENDANT_RETURN_IF_ERROR(attention.Attend(
        i, ranked.interests.data.data() + i * output_dim, found));
    double score = 0;
    if (input.candidates.dim == output_dim) {
      score = Dot(input.candidates.Row(i), ranked.interests.view().Row(i));
    } else {
      for (const LshFound& head : found) {
        score += head.mean_logit / static_cast<double>(found.size());
      }
    }
    ranked.scores.push_back(score);
    ranked.attributions.push_back(mean_weights.Best(
        found, static_cast<std::size_t>(input.attribution_count)));
  }
  ranked.scored_count = attention.scored_count();
  return ranked;
}

absl::StatusOr<RankedInterests> RankReduced(const RankInput& input,
                                            const MultiHeadInput& problem,
                                            const LinformerOptions& options) {
  if (input.attribution_count > 0) {
    return InvalidField("attribution_count",
                        absl::StrCat(input.attribution_count),
                        "0: reduced rows are no events");
  }
  ATTENDANT_ASSIGN_OR_RETURN(const ReducedKeys reduced,
                             ReduceKeys(problem, options));
  RankInput exact = input;
  exact.keys = reduced.keys.view();
  exact.values = reduced.values.view();
  exact.times = {};
  exact.approximation = {};
  return RankCandidates(exact);
}

}  // namespace

absl::StatusOr<RankedInterests> RankApproximately(
    const RankInput& input, const MultiHeadInput& problem) {
  ATTENDANT_RETURN_IF_ERROR(
      ValidateApproximation(input.approximation, problem));
  const auto* lsh = std::get_if<LshOptions>(&input.approximation);
  ATTENDANT_ASSIGN_OR_RETURN(
      RankedInterests ranked,
      lsh != nullptr
          ? RankByLsh(input, problem, *lsh)
          : RankReduced(input, problem,
                        std::get<LinformerOptions>(input.approximation)));
  ranked.future_event_count = FutureEventCount(input);
  return ranked;
}

}  // namespace attendant
