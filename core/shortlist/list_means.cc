#include "core/shortlist/list_means.h"

#include <bit>

#include "core/attention/score.h"
#include "core/kernels/kernels.h"

namespace attendant {

std::int64_t ListMeans::memory_bytes() const {
  return static_cast<std::int64_t>((means.size() + reaches.size()) *
                                   sizeof(float)) +
         codes.memory_bytes();
}

void ListMeans::ScoreLists(std::span<const float> query,
                           std::vector<float>& scores) const {
  scores.resize(reaches.size());
  ActiveKernels().DotRows(query.data(), means.data(), list_count(), dim,
                          scores.data());
  // The order of a query of norm 1, which keeps sums of huge numbers finite.
  const double norm = Norm(query);
  const auto factor = static_cast<float>(norm > 0 ? 1 / norm : 0);
  for (std::size_t l = 0; l < scores.size(); ++l) {
    scores[l] = factor * scores[l] + reaches[l];
  }
}

void ListMeans::ScoreListsByCode(std::span<const CodeQuery> queries,
                                 CodeBits bits, std::int64_t stride,
                                 float* scores) const {
  const std::int64_t blocks = (list_count() + kCodeRows - 1) / kCodeRows;
  codes.Logits(queries, bits, 0, blocks, stride, scores);
  for (std::size_t q = 0; q < queries.size(); ++q) {
    float* of_query = scores + static_cast<std::int64_t>(q) * stride;
    // Nobody asks here which is the greatest.
    ActiveKernels().AddMax(reaches.data(), list_count(), of_query);
  }
}

void ListMeans::RankLists(std::span<const float> scores,
                          std::vector<std::uint64_t>& ranks) {
  ranks.resize(scores.size());
  for (std::size_t l = 0; l < ranks.size(); ++l) {
    // The bits of a float, made to order as the float does.
    const auto bits = std::bit_cast<std::uint32_t>(scores[l]);
    const std::uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000;
    ranks[l] = std::uint64_t{ordered} << 32 | ~static_cast<std::uint32_t>(l);
  }
}

}  // namespace attendant
