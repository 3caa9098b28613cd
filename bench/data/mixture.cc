#include <algorithm>
#include <cmath>
#include <random>

#include "bench/data/source.h"
#include "core/attention/softmax/score.h"

namespace attendant {
namespace {

constexpr std::int64_t kDim = 128;

class Mixture {
 public:
  Mixture(std::int64_t cluster_count, std::uint64_t seed)
      : random_(seed),
        cluster_count_(static_cast<std::uint64_t>(cluster_count)),
        centres_(cluster_count_ * kDim) {
    for (float& component : centres_) component = normal_(random_);
  }

  std::vector<float> Draw(std::int64_t count) {
    std::vector<float> rows(static_cast<std::size_t>(count * kDim));
    for (std::int64_t r = 0; r < count; ++r) {
      const auto cluster =
          static_cast<std::int64_t>(random_() % cluster_count_);
      for (std::int64_t d = 0; d < kDim; ++d) {
        rows[r * kDim + d] = centres_[cluster * kDim + d] + normal_(random_);
      }
    }
    NormaliseRows(kDim, rows);
    return rows;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<float> normal_;
  const std::uint64_t cluster_count_;
  std::vector<float> centres_;  // [cluster_count_, kDim]
};

}  // namespace

void NormaliseRows(std::int64_t dim, std::span<float> rows) {
  const auto step = static_cast<std::size_t>(dim);
  for (std::size_t begin = 0; begin < rows.size(); begin += step) {
    const std::span<float> row = rows.subspan(begin, step);
    const double norm = Norm(row);
    if (norm == 0) continue;
    for (float& component : row) {
      component = static_cast<float>(component / norm);
    }
  }
}

Vectors MakeMixture(const MixtureOptions& options) {
  Mixture mixture(options.cluster_count, kDataSeed);
  Vectors vectors;
  vectors.dim = kDim;
  vectors.queries = mixture.Draw(kDataQueryCount);
  vectors.keys = mixture.Draw(options.key_count);
  if (options.foreign_queries) {
    vectors.queries =
        Mixture(options.cluster_count, kDataSeed + 1).Draw(kDataQueryCount);
  }
  if (options.least_norm < 1) {
    std::mt19937_64 random(kDataSeed + 2);
    std::uniform_real_distribution<double> log_norm(
        std::log(options.least_norm), 0);
    for (std::int64_t r = 0; r < options.key_count; ++r) {
      const auto norm = static_cast<float>(std::exp(log_norm(random)));
      float* key = vectors.keys.data() + r * kDim;
      std::transform(key, key + kDim, key,
                     [norm](float component) { return norm * component; });
    }
  }
  return vectors;
}

}  // namespace attendant
