// The vectors that benchmarks run on, made once and kept in a directory.
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

// Keys and queries are scored by their product, kDot. But for "norms", whose
// keys' norms are spread from 0.1 to 1, all have norm 1, so that it is the
// cosine.
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

// "mixture-N" with N keys as in mixture-200k or mixture-1m, 2,000 clusters;
// "grown-N", a cluster for each 500 keys; "fashion",
// "wordnet", "retail", "norms" (a mixture of 100,000 keys with norms from 0.1
// to 1), "foreign" (the same keys with norm 1, and queries of clusters that
// no key is of) and "wordnet-foreign" (the glosses, asked by Fashion-MNIST's
// images mixed with noise). See source.h for each. Reads it from `directory`,
// or makes it there; that takes from seconds to minutes. NotFound: no such set,
// or a package is missing.
absl::StatusOr<DataSet> LoadDataSet(absl::string_view name,
                                    const std::string& directory);

// Where the data is by default, from the root of the tree.
inline constexpr char kDataDirectory[] = "build/bench-data";

}  // namespace attendant

#endif  // ATTENDANT_BENCH_DATA_DATA_SET_H_
