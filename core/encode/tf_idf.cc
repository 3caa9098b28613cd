#include "core/encode/tf_idf.h"

#include <algorithm>
#include <cmath>

namespace attendant {

void Normalise(TermWeights& weights) {
  double square = 0;
  for (const auto& [position, weight] : weights) square += weight * weight;
  if (square == 0) {
    weights.clear();
    return;
  }
  const double norm = std::sqrt(square);
  for (auto& [position, weight] : weights) weight /= norm;
}

TermWeights WeighTerms(const std::vector<std::string>& terms,
                       const TermPositions& positions,
                       std::span<const float> idf) {
  std::vector<std::int32_t> known;
  for (const std::string& term : terms) {
    const auto found = positions.find(term);
    if (found != positions.end()) known.push_back(found->second);
  }
  std::ranges::sort(known);
  TermWeights weights;
  for (std::size_t i = 0; i < known.size();) {
    const std::int32_t position = known[i];
    std::int64_t count = 0;
    for (; i < known.size() && known[i] == position; ++i) ++count;
    weights.emplace_back(
        position, (1 + std::log(static_cast<double>(count))) * idf[position]);
  }
  Normalise(weights);
  return weights;
}

std::vector<float> FoldIn(const TermWeights& weights,
                          std::span<const float> projection, std::int64_t dim) {
  const auto size = static_cast<std::size_t>(dim);
  std::vector<double> sum(size);
  for (const auto& [position, weight] : weights) {
    const std::span<const float> row =
        projection.subspan(static_cast<std::size_t>(position) * size, size);
    for (std::size_t d = 0; d < size; ++d) sum[d] += weight * row[d];
  }
  return {sum.begin(), sum.end()};
}

}  // namespace attendant
