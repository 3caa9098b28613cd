// Vectors that benchmarks run on, made once and kept in a directory.
#ifndef ATTENDANT_BENCH_DATA_DATA_SET_H_
#define ATTENDANT_BENCH_DATA_DATA_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/data/matrix_file.h"
#include "core/base/views.h"

namespace attendant {

// Keys and queries are scored by dot product, kDot. All have norm 1, which
// makes it the cosine, except that the keys of "norms" have norms from 0.1 to
// 1.
struct DataSet {
  std::string name;
  std::int64_t dim = 0;
  MatrixFile<float> keys;     // [n, dim]
  MatrixFile<float> queries;  // [2,000, dim]

  MatrixView key_view() const { return {keys.data(), keys.row_count(), dim}; }
  MatrixView query_view() const {
    return {queries.data(), queries.row_count(), dim};
  }
};

// Returns one of these sets (see source.h):
//   "mixture-N": N keys, as in mixture-200k or mixture-1m; 2,000 clusters.
//   "grown-N": N keys; one cluster for each 500 keys.
//   "fashion", "wordnet", "retail".
//   "norms": a mixture of 100,000 keys with norms from 0.1 to 1.
//   "foreign": the same keys with norm 1; queries from clusters without keys.
//   "wordnet-foreign": the glosses, queried with noisy Fashion-MNIST images.
// Reads the set from `directory`, or makes and stores it there, which takes
// from seconds to minutes. NotFound if there is no such set or a package is
// missing.
absl::StatusOr<DataSet> LoadDataSet(absl::string_view name,
                                    const std::string& directory);

// Default data directory, relative to the root of the tree.
inline constexpr char kDataDirectory[] = "build/bench-data";

}  // namespace attendant

#endif  // ATTENDANT_BENCH_DATA_DATA_SET_H_
