#include "core/encode/svd.h"

#include <Spectra/SymEigsSolver.h>
#include <lapacke.h>

#include <Eigen/Dense>
#include <Eigen/SparseCore>
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

using Dense = Eigen::MatrixXd;
using Sparse = Eigen::SparseMatrix<double, Eigen::RowMajor>;

// Up to this many columns (of the lesser side) and elements, a dense
// decomposition takes less than a second.
constexpr std::int64_t kDenseDimension = 256;
constexpr std::int64_t kDenseElements = std::int64_t{1} << 22;

// Singular values below this share of the greatest are rounding noise.
constexpr double kRankTolerance = 1e-12;

struct Triplets {
  Dense u;
  Eigen::VectorXd s;
  Dense v;
};

// Computes x -> (A^T A + shift) x, for Spectra.
class ShiftedGram {
 public:
  using Scalar = double;

  ShiftedGram(const Sparse& a, double shift)
      : a_(a), transposed_(a.transpose()), shift_(shift), image_(a.rows()) {}

  Eigen::Index rows() const { return a_.cols(); }
  Eigen::Index cols() const { return a_.cols(); }
  void perform_op(const double* x, double* y) const {
    Eigen::Map<const Eigen::VectorXd> from(x, a_.cols());
    Eigen::Map<Eigen::VectorXd> to(y, a_.cols());
    image_.noalias() = a_ * from;
    to.noalias() = transposed_ * image_;
    to += shift_ * from;
  }

 private:
  const Sparse& a_;
  const Sparse transposed_;  // also row-major: both products are gathers
  const double shift_;
  mutable Eigen::VectorXd image_;
};

absl::Status Validate(const SparseMatrix& matrix, std::int64_t k) {
  if (k < 1) return InvalidField("dim", absl::StrCat(k), "at least 1");
  bool all_zero = true;
  for (std::size_t i = 0; i < matrix.entries.size(); ++i) {
    const MatrixEntry& entry = matrix.entries[i];
    if (entry.row < 0 || entry.row >= matrix.row_count || entry.column < 0 ||
        entry.column >= matrix.column_count) {
      return InvalidField(absl::StrCat("matrix.entries[", i, "]"),
                          absl::StrCat(entry.row, ", ", entry.column),
                          absl::StrCat("a place in ", matrix.row_count, " x ",
                                       matrix.column_count));
    }
    if (!std::isfinite(entry.value)) {
      return InvalidField(absl::StrCat("matrix.entries[", i, "]"),
                          absl::StrCat(entry.value), "a finite value");
    }
    all_zero = all_zero && entry.value == 0;
  }
  if (all_zero) {
    return InvalidField("matrix", "nothing but zeros", "a value that is not 0");
  }
  return absl::OkStatus();
}

// Returns the matrix over `scale`, transposed if it is wider than tall.
Sparse Tall(const SparseMatrix& matrix, bool transpose, double scale) {
  std::vector<Eigen::Triplet<double>> triplets;
  triplets.reserve(matrix.entries.size());
  for (const MatrixEntry& entry : matrix.entries) {
    triplets.emplace_back(transpose ? entry.column : entry.row,
                          transpose ? entry.row : entry.column,
                          entry.value / scale);
  }
  Sparse a(transpose ? matrix.column_count : matrix.row_count,
           transpose ? matrix.row_count : matrix.column_count);
  a.setFromTriplets(triplets.begin(), triplets.end());
  return a;
}

// Uses LAPACK rather than Eigen, whose templates take minutes to compile with a
// sanitizer.
absl::StatusOr<Triplets> DenseSvd(Dense a) {
  const auto rows = static_cast<lapack_int>(a.rows());
  const auto columns = static_cast<lapack_int>(a.cols());
  const lapack_int rank = std::min(rows, columns);
  Triplets triplets{Dense(rows, rank), Eigen::VectorXd(rank), Dense()};
  Dense v_transposed(rank, columns);
  const lapack_int info = LAPACKE_dgesdd(
      LAPACK_COL_MAJOR, 'S', rows, columns, a.data(), rows, triplets.s.data(),
      triplets.u.data(), rows, v_transposed.data(), rank);
  if (info != 0) {
    return absl::InternalError(
        absl::StrCat("the dense SVD did not converge: dgesdd says ", info));
  }
  triplets.v = v_transposed.transpose();
  return triplets;
}

// Finds the space of the k greatest right singular vectors by Lanczos on A^T A,
// then decomposes A restricted to it. The second step recovers the half of the
// digits that squaring A loses.
absl::StatusOr<Triplets> LanczosSvd(const Sparse& a, std::int64_t k) {
  // Spectra's tolerance is relative to each eigenvalue, which the eigenvalues
  // of a null space can't meet. Adding the mean eigenvalue to all of them makes
  // them converge.
  const double shift = a.squaredNorm() / static_cast<double>(a.cols());
  ShiftedGram gram(a, shift);
  const auto basis = std::min<Eigen::Index>(2 * k + 20, a.cols());
  Spectra::SymEigsSolver<ShiftedGram> solver(gram, k, basis);
  solver.init();  // fixed start: the same input gives the same output
  solver.compute(Spectra::SortRule::LargestAlge, 1000, 1e-10);
  if (solver.info() != Spectra::CompInfo::Successful) {
    return absl::InternalError(absl::StrCat(
        "Lanczos found only ", solver.eigenvalues().size(), " of ", k,
        " singular vectors of a ", a.rows(), " x ", a.cols(), " matrix"));
  }
  const Dense basis_vectors = solver.eigenvectors();
  ATTENDANT_ASSIGN_OR_RETURN(Triplets triplets, DenseSvd(a * basis_vectors));
  triplets.v = basis_vectors * triplets.v;
  return triplets;
}

// Zeroes the singular vector components of empty rows or columns of the matrix.
// They are exactly 0, which rounding would blur.
void ClearEmpty(const std::vector<bool>& used, Dense& vectors) {
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) vectors.row(static_cast<Eigen::Index>(i)).setZero();
  }
}

// True if the largest component of v is negative; of components that are equal
// up to rounding, the first counts.
bool NeedsFlip(const Eigen::Ref<const Eigen::VectorXd>& v) {
  const double least = v.cwiseAbs().maxCoeff() * (1 - 1e-9);
  for (const double component : v) {
    if (std::abs(component) >= least) return component < 0;
  }
  return false;
}

std::vector<double> RowMajor(const Dense& matrix) {
  std::vector<double> data(static_cast<std::size_t>(matrix.size()));
  Eigen::Map<
      Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
      data.data(), matrix.rows(), matrix.cols()) = matrix;
  return data;
}

}  // namespace

absl::StatusOr<TruncatedSvd> ComputeTruncatedSvd(const SparseMatrix& matrix,
                                                 std::int64_t k) {
  ATTENDANT_RETURN_IF_ERROR(Validate(matrix, k));
  // Scaled to a greatest element of 1, nothing overflows when squared.
  double scale = 0;
  std::vector<bool> used_rows(static_cast<std::size_t>(matrix.row_count));
  std::vector<bool> used_columns(static_cast<std::size_t>(matrix.column_count));
  for (const MatrixEntry& entry : matrix.entries) {
    scale = std::max(scale, std::abs(entry.value));
    if (entry.value == 0) continue;
    used_rows[entry.row] = true;
    used_columns[entry.column] = true;
  }
  const bool transpose = matrix.row_count < matrix.column_count;
  const Sparse a = Tall(matrix, transpose, scale);
  k = std::min<std::int64_t>(k, a.cols());

  const bool small =
      a.cols() <= kDenseDimension && a.rows() * a.cols() <= kDenseElements;
  Triplets triplets;
  if (small || 2 * k >= a.cols()) {
    ATTENDANT_ASSIGN_OR_RETURN(triplets, DenseSvd(Dense(a)));
  } else {
    ATTENDANT_ASSIGN_OR_RETURN(triplets, LanczosSvd(a, k));
  }
  if (transpose) std::swap(triplets.u, triplets.v);

  Eigen::Index dim = 0;
  while (dim < k && triplets.s[dim] > kRankTolerance * triplets.s[0]) ++dim;
  Dense u = triplets.u.leftCols(dim);
  Dense v = triplets.v.leftCols(dim);
  ClearEmpty(used_rows, u);
  ClearEmpty(used_columns, v);
  for (Eigen::Index column = 0; column < dim; ++column) {
    if (!NeedsFlip(v.col(column))) continue;
    u.col(column) *= -1;
    v.col(column) *= -1;
  }
  const Eigen::VectorXd s = triplets.s.head(dim) * scale;
  return TruncatedSvd{.dim = dim,
                      .u = RowMajor(u),
                      .s = {s.begin(), s.end()},
                      .v = RowMajor(v)};
}

}  // namespace attendant
