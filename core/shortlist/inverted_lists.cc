#include "core/shortlist/inverted_lists.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace attendant {

void InvertedLists::Summarise(bool normalise, std::uint64_t seed) {
  auto made = std::make_shared<ListMeans>();
  made->dim = dim;
  const auto width = static_cast<std::size_t>(dim);
  const auto lists = static_cast<std::size_t>(list_count());
  made->means = AlignedBuffer<float>(lists * width);
  // A list without keys promises nothing.
  made->reaches.assign(lists, std::numeric_limits<float>::lowest());
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
      made->means[l * width + d] = static_cast<float>(mean);
      mean_square += mean * mean;
    }
    if (begin == end) continue;
    const double variance = std::max(0.0, square_sum / count - mean_square) /
                            static_cast<double>(dim);
    made->reaches[l] =
        static_cast<float>(std::sqrt(2 * variance * std::log(count)));
  }
  made->codes = KeyCodes(made->view(), {}, seed);
  means = std::move(made);
}

void InvertedLists::Encode(bool normalise, std::uint64_t seed) {
  codes = KeyCodes(key_runs(),
                   normalise ? std::span<const float>(inverse_norms)
                             : std::span<const float>(),
                   means->view(), offsets, seed);
  log_counts.clear();
  for (std::size_t l = 0; l + 1 < offsets.size(); ++l) {
    const std::int64_t count = offsets[l + 1] - offsets[l];
    log_counts.push_back(count == 0 ? -1 : std::log(static_cast<float>(count)));
  }
}

double InvertedLists::MeanSquareDistance(bool normalise) const {
  double sum = 0;
  for (std::int64_t l = 0; l < list_count(); ++l) {
    const std::span<const float> mean = means->Mean(l);
    for (std::int64_t p = offsets[static_cast<std::size_t>(l)];
         p < offsets[static_cast<std::size_t>(l) + 1]; ++p) {
      const float* key = keys.runs() + p * dim;
      const float factor =
          normalise ? inverse_norms[static_cast<std::size_t>(p)] : 1;
      float square = 0;
      for (std::size_t d = 0; d < mean.size(); ++d) {
        const float off = factor * key[d] - mean[d];
        square += off * off;
      }
      sum += square;
    }
  }
  return key_count() == 0 ? 0 : sum / static_cast<double>(key_count());
}

}  // namespace attendant
