// Truncated singular value decomposition of a sparse matrix.
#ifndef ATTENDANT_CORE_ENCODE_SVD_H_
#define ATTENDANT_CORE_ENCODE_SVD_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant {

// One nonzero of a sparse matrix.
struct MatrixEntry {
  std::int32_t row = 0;
  std::int32_t column = 0;
  double value = 0;
};

// row_count x column_count; at most one entry per place, in any order.
struct SparseMatrix {
  std::int32_t row_count = 0;
  std::int32_t column_count = 0;
  std::vector<MatrixEntry> entries;
};

// X ~ U diag(s) V^T, s descending. All in double precision, row-major.
struct TruncatedSvd {
  std::int64_t dim = 0;   // k, at most min(row_count, column_count)
  std::vector<double> u;  // [row_count, k]
  std::vector<double> s;  // [k]
  std::vector<double> v;  // [column_count, k]
};

// Returns the k greatest singular triplets, k >= 1. Triplets below 1e-12 of the
// greatest are left out; `dim` is then smaller than k. The sign of each triplet
// is fixed so that the largest component of its column of v is positive. Small
// matrices use a dense decomposition (LAPACK), large ones Lanczos (Spectra).
// InvalidArgument: an entry not finite, an index out of range, all entries
// zero, or k < 1.
absl::StatusOr<TruncatedSvd> ComputeTruncatedSvd(const SparseMatrix& matrix,
                                                 std::int64_t k);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ENCODE_SVD_H_
