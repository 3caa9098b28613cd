// Sources of the benchmarks' vectors. Each function makes one set, with the
// same bytes every time on one machine.
#ifndef ATTENDANT_BENCH_DATA_SOURCE_H_
#define ATTENDANT_BENCH_DATA_SOURCE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant {

struct Vectors {
  std::int64_t dim = 0;
  std::vector<float> keys;     // [n, dim]
  std::vector<float> queries;  // [m, dim]
};

inline constexpr std::int64_t kDataQueryCount = 2000;
inline constexpr std::uint64_t kDataSeed = 20240607;

// Divides each row of `dim` floats by its norm; leaves zero rows unchanged.
void NormaliseRows(std::int64_t dim, std::span<float> rows);

struct MixtureOptions {
  std::int64_t key_count = 0;
  std::int64_t cluster_count = 2000;
  // Draws queries from separate clusters that contain no keys.
  bool foreign_queries = false;
  // Norms of keys are drawn log-uniformly from [least_norm, 1]; with 1 all
  // norms are 1.
  double least_norm = 1;
};
// Gaussian clusters in 128 dimensions; centres, and vectors within a cluster,
// have deviation 1 per dimension. All are then normalised. For a given number
// of clusters, a smaller set's keys are the first keys of a larger set, and
// both have the same queries.
Vectors MakeMixture(const MixtureOptions& options);

// The 60,000 training images of Fashion-MNIST (Xiao, Rasul, Vollgraf 2017),
// centred, projected on their 128 principal components and normalised. Queries
// are test images. NotFound without Debian's dataset-fashion-mnist.
absl::StatusOr<Vectors> ReadFashionMnist();

// The glosses of WordNet 3.0: TF-IDF, truncated SVD to 128 dimensions,
// normalised. Queries are every second word of a gloss. NotFound without
// Debian's wordnet-base.
absl::StatusOr<Vectors> ReadWordNet();

// The items of examples/online_retail by latent semantic indexing of which
// customers bought them, in 64 dimensions, normalised. Queries are customers'
// purchase histories.
absl::StatusOr<Vectors> ReadOnlineRetail();

}  // namespace attendant

#endif  // ATTENDANT_BENCH_DATA_SOURCE_H_
