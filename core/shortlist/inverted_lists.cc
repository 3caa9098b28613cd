#include "core/shortlist/inverted_lists.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/attention/score.h"
#include "core/kernels/kernels.h"

namespace attendant {

void InvertedLists::Summarise(bool normalise) {
  const auto width = static_cast<std::size_t>(dim);
  const auto lists = static_cast<std::size_t>(list_count());
  means = AlignedBuffer<float>(lists * width);
  // A list without keys promises nothing.
  reaches.assign(lists, std::numeric_limits<float>::lowest());
  std::vector<double> sum(width);
  for (std::size_t l = 0; l < lists; ++l) {
    std::fill(sum.begin(), sum.end(), 0);
    double square_sum = 0;
    const std::int64_t begin = offsets[l];
    const std::int64_t end = offsets[l + 1];
    for (std::int64_t p = begin; p < end; ++p) {
      const float* key = keys.runs() + p * dim;
      const double factor =
          normalise ? inverse_norms[static_cast<std::size_t>(p)] : 1;
      for (std::size_t d = 0; d < width; ++d) {
        const double component = factor * key[d];
        sum[d] += component;
        square_sum += component * component;
      }
    }
    const auto count =
        static_cast<double>(std::max<std::int64_t>(1, end - begin));
    double mean_square = 0;
    for (std::size_t d = 0; d < width; ++d) {
      const double mean = sum[d] / count;
      means[l * width + d] = static_cast<float>(mean);
      mean_square += mean * mean;
    }
    if (begin == end) continue;
    const double variance = std::max(0.0, square_sum / count - mean_square) /
                            static_cast<double>(dim);
    reaches[l] = static_cast<float>(std::sqrt(2 * variance * std::log(count)));
  }
}

void InvertedLists::Encode(bool normalise, std::uint64_t seed) {
  const MatrixView mean_view = {means.data(), list_count(), dim};
  codes = KeyCodes(key_runs(),
                   normalise ? std::span<const float>(inverse_norms)
                             : std::span<const float>(),
                   mean_view, offsets, seed);
  mean_codes = KeyCodes(mean_view, {}, seed);
}

void InvertedLists::ScoreLists(std::span<const float> query,
                               std::vector<float>& scores) const {
  const std::int64_t lists = list_count();
  scores.resize(static_cast<std::size_t>(lists));
  ActiveKernels().DotRows(query.data(), means.data(), lists, dim,
                          scores.data());
  // The order of a query of norm 1, which keeps sums of huge numbers finite.
  const double norm = Norm(query);
  const auto factor = static_cast<float>(norm > 0 ? 1 / norm : 0);
  for (std::size_t l = 0; l < scores.size(); ++l) {
    scores[l] = factor * scores[l] + reaches[l];
  }
}

void InvertedLists::ScoreListsByCode(std::span<const CodeQuery> queries,
                                     CodeBits bits, std::int64_t stride,
                                     float* scores) const {
  const std::int64_t blocks = (list_count() + kCodeRows - 1) / kCodeRows;
  mean_codes.Logits(queries, bits, 0, blocks, stride, scores);
  for (std::size_t q = 0; q < queries.size(); ++q) {
    float* of_query = scores + static_cast<std::int64_t>(q) * stride;
    for (std::size_t l = 0; l < reaches.size(); ++l) of_query[l] += reaches[l];
  }
}

void InvertedLists::RankLists(std::span<const float> scores,
                              std::vector<std::uint64_t>& ranks) const {
  ranks.resize(scores.size());
  for (std::size_t l = 0; l < ranks.size(); ++l) {
    // The bits of a float, made to order as the float does.
    const auto bits = std::bit_cast<std::uint32_t>(scores[l]);
    const std::uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000;
    ranks[l] = std::uint64_t{ordered} << 32 | ~static_cast<std::uint32_t>(l);
  }
}

}  // namespace attendant
