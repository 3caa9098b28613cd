// Where the vectors of the benchmarks come from: each function makes one set,
// the same bytes every time on one machine.
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

// Divides each row of `dim` floats by its norm; a zero row stays.
void NormaliseRows(std::int64_t dim, std::span<float> rows);

struct MixtureOptions {
  std::int64_t key_count = 0;
  std::int64_t cluster_count = 2000;
  // Queries come from clusters of their own, which no key is of.
  bool foreign_queries = false;
  // Norms of keys are drawn log-uniformly from this to 1; 1: all are 1.
  double least_norm = 1;
};
// Gaussian clusters in 128 dimensions, the deviation of centres and of vectors
// within a cluster 1 in each; then normalised. With as many clusters, the keys
// of a smaller set are the first of a larger one, and both have the same
// queries.
Vectors MakeMixture(const MixtureOptions& options);

// The 60,000 training images of Fashion-MNIST (Xiao, Rasul, Vollgraf 2017) less
// their mean, on their 128 principal components, normalised. Queries are test
// images. NotFound without Debian's dataset-fashion-mnist.
absl::StatusOr<Vectors> ReadFashionMnist();

// The glosses of WordNet 3.0: TF-IDF, truncated SVD to 128 dimensions,
// normalised. Queries are every second word of a gloss. NotFound without
// Debian's wordnet-base.
absl::StatusOr<Vectors> ReadWordNet();

// The items of examples/online_retail by latent semantic indexing of who bought
// what, 64 dimensions, normalised. Queries are the histories of customers.
absl::StatusOr<Vectors> ReadOnlineRetail();

}  // namespace attendant

#endif  // ATTENDANT_BENCH_DATA_SOURCE_H_
