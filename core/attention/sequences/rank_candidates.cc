#include "core/attention/sequences/rank_candidates.h"

#include <algorithm>
#include <limits>

#include "core/attention/heads/key_tile.h"
#include "core/attention/heads/query_block.h"
#include "core/attention/sequences/rank_approximately.h"
#include "core/base/aligned_buffer.h"
#include "core/base/minus_infinity.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

// Keeps the k best of the events offered, in a heap with the worst in front.
void Offer(const EventWeight& offered, std::size_t k,
           std::vector<EventWeight>& best) {
  if (best.size() == k) {
    if (!Better(offered, best.front())) return;
    std::ranges::pop_heap(best, Better);
    best.pop_back();
  }
  best.push_back(offered);
  std::ranges::push_heap(best, Better);
}

// Finds the events of greatest weight for the candidates of `block`, to which
// all events have been added.
absl::Status Attribute(const RankInput& input, QueryBlock& block, KeyTile& tile,
                       AlignedBuffer<float>& mean_weights,
                       std::vector<std::vector<EventWeight>>& attributions) {
  const auto k = static_cast<std::size_t>(input.attribution_count);
  std::int32_t selected[kTileKeys];
  for (std::int64_t first = 0; first < tile.order_size(); first += kTileKeys) {
    ATTENDANT_RETURN_IF_ERROR(tile.Load(first, block.last()));
    ATTENDANT_RETURN_IF_ERROR(block.MeanWeights(tile, mean_weights.data()));
    for (std::int64_t i = 0; i < block.count(); ++i) {
      const float* weights = mean_weights.data() + i * tile.size();
      auto& best = attributions[block.first() + i];
      const float threshold = best.size() < k
                                  ? kMinusInfinityF
                                  : static_cast<float>(best.front().weight);
      const std::int64_t count = ActiveKernels().SelectAtLeast(
          weights, tile.size(), threshold, selected);
      for (std::int64_t s = 0; s < count; ++s) {
        const float weight = weights[selected[s]];
        if (weight == 0) continue;
        Offer({tile.positions()[selected[s]], weight}, k, best);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RankedInterests> RankCandidates(const RankInput& input) {
  ATTENDANT_RETURN_IF_ERROR(CheckCount(input.candidates.row_count, 0,
                                       std::numeric_limits<std::int32_t>::max(),
                                       input.names.queries));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(
      input.attribution_count, 0, kMaxAttributionCount, "attribution_count"));
  MultiHeadInput problem;
  problem.heads = input.heads;
  problem.queries = input.candidates;
  problem.keys = input.keys;
  problem.values = input.values;
  problem.score_kind = input.score_kind;
  problem.temperature = input.temperature;
  problem.activation_kind = input.activation_kind;
  problem.mask.key_times = input.times;
  problem.mask.query_time = input.time;
  problem.interrupt = input.interrupt;
  problem.names = input.names;
  ATTENDANT_RETURN_IF_ERROR(ValidateMultiHead(problem));
  if (!IsExact(input.approximation)) return RankApproximately(input, problem);

  const std::int64_t m = input.candidates.row_count;
  RankedInterests ranked;
  ranked.interests = {m, problem.output_dim(), {}};
  ranked.interests.data.resize(
      static_cast<std::size_t>(m * problem.output_dim()));
  ranked.scores.resize(static_cast<std::size_t>(m));
  ranked.attributions.resize(static_cast<std::size_t>(m));
  ranked.future_event_count = FutureEventCount(input);

  KeyTile tile(problem);
  QueryBlock block(problem);
  AlignedBuffer<float> mean_weights(
      static_cast<std::size_t>(block.capacity() * kTileKeys));
  const bool one_dim = input.candidates.dim == problem.output_dim();
  for (std::int64_t first = 0; first < m; first += block.capacity()) {
    ATTENDANT_RETURN_IF_ERROR(
        block.Start(first, std::min(block.capacity(), m - first), nullptr));
    for (std::int64_t key = 0; key < tile.order_size(); key += kTileKeys) {
      ATTENDANT_RETURN_IF_ERROR(tile.Load(key, block.last()));
      ATTENDANT_RETURN_IF_ERROR(block.Add(tile));
    }
    ATTENDANT_RETURN_IF_ERROR(block.Finish(ranked.interests.data.data()));
    for (std::int64_t i = first; i < first + block.count(); ++i) {
      ranked.scores[i] =
          one_dim ? ScoreOf(input.score_kind, input.candidates.Row(i),
                            ranked.interests.view().Row(i))
                  : block.MeanLogit(i - first);
    }
    if (input.attribution_count > 0) {
      ATTENDANT_RETURN_IF_ERROR(
          Attribute(input, block, tile, mean_weights, ranked.attributions));
    }
  }
  for (auto& best : ranked.attributions) {
    std::ranges::sort(best, Better);
  }
  ranked.scored_count = block.scored_count();
  return ranked;
}

}  // namespace attendant
