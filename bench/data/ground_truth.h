// Results of exact attention over a data set, in double precision.
#ifndef ATTENDANT_BENCH_DATA_GROUND_TRUTH_H_
#define ATTENDANT_BENCH_DATA_GROUND_TRUTH_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "bench/data/data_set.h"
#include "bench/data/matrix_file.h"

namespace attendant {

// Temperatures of the columns of log_partitions.
inline constexpr std::array<double, 4> kTemperatures = {0.2, 0.1, 0.05, 0.02};
inline constexpr std::int64_t kTruthCount = 100;

// BLAS sums the products in doubles: errors are below 1e-14 here.
struct GroundTruth {
  // The best keys of each query, best first, ties by the lower row:
  //   [queries, kTruthCount].
  MatrixFile<std::int32_t> neighbours;
  MatrixFile<double> similarities;  // of the neighbours
  // log of the sum over all keys of exp(similarity / temperature): [queries,
  // kTemperatures.size()].
  MatrixFile<double> log_partitions;
};

// Reads the truth from `directory`, or computes and stores it there on all
// cores: about a minute for 1,000,000 keys.
absl::StatusOr<GroundTruth> LoadGroundTruth(const DataSet& data,
                                            const std::string& directory);

}  // namespace attendant

#endif  // ATTENDANT_BENCH_DATA_GROUND_TRUTH_H_
