#include "core/attention/sequences/rank_approximately.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/approximations/lsh_attention.h"
#include "core/attention/approximations/lsh_buckets.h"
#include "core/attention/approximations/row_reduction.h"
#include "core/attention/heads/head_join.h"
#include "core/attention/heads/size.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Limit on the doubles held for a block: the weights of its candidates by
// event, and HeadJoin's sums. One candidate may take more.
constexpr std::int64_t kBlockDoubles = std::int64_t{1} << 22;

// Returns the k events of greatest weight, without those of weight 0.
std::vector<EventWeight> Best(std::span<const double> weights, std::size_t k) {
  std::vector<EventWeight> best;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) {
      best.push_back({static_cast<std::int64_t>(i), weights[i]});
    }
  }
  const std::size_t count = std::min(k, best.size());
  std::partial_sort(best.begin(),
                    best.begin() + static_cast<std::ptrdiff_t>(count),
                    best.end(), Better);
  best.resize(count);
  return best;
}

// Ranks block by block, as the result of one head waits for the other heads.
class LshRanker {
 public:
  LshRanker(const RankInput& input, const MultiHeadInput& problem,
            std::shared_ptr<const LshBuckets> buckets)
      : input_(input),
        problem_(problem),
        event_count_(input.attribution_count > 0 ? input.keys.row_count : 0),
        attention_(problem, std::move(buckets)) {}

  absl::StatusOr<RankedInterests> Rank() {
    const std::int64_t m = input_.candidates.row_count;
    ranked_.interests = {m, problem_.output_dim(), {}};
    ranked_.interests.data.resize(Size(m * problem_.output_dim()));
    const std::int64_t doubles = event_count_ + HeadJoin::SumsOfQuery(problem_);
    const std::int64_t block =
        doubles == 0 ? m : std::max<std::int64_t>(1, kBlockDoubles / doubles);
    HeadJoin join(problem_, std::min(block, m));
    for (std::int64_t first = 0; first < m; first += block) {
      ATTENDANT_RETURN_IF_ERROR(
          RankBlock(first, std::min(block, m - first), join));
    }
    ranked_.scored_count = attention_.scored_count();
    return std::move(ranked_);
  }

 private:
  absl::Status RankBlock(std::int64_t first, std::int64_t count,
                         HeadJoin& join) {
    mean_weights_.assign(Size(count * event_count_), 0);
    mean_logits_.assign(Size(count), 0);
    join.Start(count,
               ranked_.interests.data.data() + first * problem_.output_dim());
    for (std::int64_t head = 0; head < problem_.head_count(); ++head) {
      ATTENDANT_RETURN_IF_ERROR(attention_.LoadHead(head));
      join.StartHead(head);
      ATTENDANT_RETURN_IF_ERROR(AttendHead(first, count, join));
    }
    ATTENDANT_RETURN_IF_ERROR(join.Finish());
    const bool one_dim = input_.candidates.dim == problem_.output_dim();
    for (std::int64_t i = 0; i < count; ++i) {
      ranked_.scores.push_back(
          one_dim ? ScoreOf(input_.score_kind, input_.candidates.Row(first + i),
                            ranked_.interests.view().Row(first + i))
                  : mean_logits_[Size(i)]);
      ranked_.attributions.push_back(
          Best({mean_weights_.data() + i * event_count_, Size(event_count_)},
               Size(input_.attribution_count)));
    }
    return absl::OkStatus();
  }

  absl::Status AttendHead(std::int64_t first, std::int64_t count,
                          HeadJoin& join) {
    const double share = 1 / static_cast<double>(problem_.head_count());
    std::vector<float> pooled(Size(problem_.head_value_dim()));
    LshFound found;
    for (std::int64_t i = 0; i < count; ++i) {
      ATTENDANT_RETURN_IF_ERROR(
          attention_.Attend(first + i, pooled.data(), found));
      join.Add(i, pooled.data(), found.positions.empty());
      mean_logits_[Size(i)] += share * found.mean_logit;
      if (event_count_ == 0) continue;
      double* weights = mean_weights_.data() + i * event_count_;
      for (std::size_t k = 0; k < found.positions.size(); ++k) {
        weights[found.positions[k]] += share * double{found.weights[k]};
      }
    }
    return absl::OkStatus();
  }

  const RankInput& input_;
  const MultiHeadInput& problem_;
  const std::int64_t event_count_;  // 0: events are not named
  LshAttention attention_;
  RankedInterests ranked_;
  // For the current block.
  std::vector<double> mean_weights_;  // [candidates, event_count]
  std::vector<double> mean_logits_;   // [candidates]
};

absl::StatusOr<RankedInterests> RankByLsh(const RankInput& input,
                                          const MultiHeadInput& problem,
                                          const LshAttentionOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(
      auto buckets,
      LshBuckets::Draw(LshShapeOf(problem, options), problem.interrupt));
  return LshRanker(input, problem, std::move(buckets)).Rank();
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
  exact.names.keys = exact.names.values = kReducedRows;
  return RankCandidates(exact);
}

}  // namespace

absl::StatusOr<RankedInterests> RankApproximately(
    const RankInput& input, const MultiHeadInput& problem) {
  ATTENDANT_RETURN_IF_ERROR(
      ValidateApproximation(input.approximation, problem));
  const auto* lsh = std::get_if<LshAttentionOptions>(&input.approximation);
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
