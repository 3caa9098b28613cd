#include "core/attention/models/asymmetry.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "core/base/status.h"

namespace attendant {
namespace {

// Sums over S, in doubles.
struct Squares {
  double form = 0;        // |S|^2
  double difference = 0;  // |S - S^T|^2

  double ratio() const {
    // The difference of two nearly equal sums may round below 0.
    return form > 0 ? std::sqrt(std::max(difference, 0.0) / form) : 0;
  }
};

// Uses four sums, so that additions need not wait for each other. Dot(a, b)
// equals Dot(b, a) to the last bit.
double Dot(std::span<const float> a, std::span<const float> b) {
  double sums[4] = {};
  const std::size_t n = a.size();
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      sums[lane] += static_cast<double>(a[i + lane]) * b[i + lane];
    }
  }
  for (; i < n; ++i) sums[0] += static_cast<double>(a[i]) * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

Matrix Transposed(const Matrix& matrix) {
  Matrix transposed;
  transposed.row_count = matrix.column_count;
  transposed.column_count = matrix.row_count;
  transposed.data.resize(matrix.data.size());
  for (std::int64_t r = 0; r < matrix.row_count; ++r) {
    for (std::int64_t c = 0; c < matrix.column_count; ++c) {
      transposed.data[c * transposed.column_count + r] =
          matrix.data[r * matrix.column_count + c];
    }
  }
  return transposed;
}

// Computes S = query^T key entry by entry, from column i of one and column j of
// the other.
absl::StatusOr<Squares> SquaresOfEntries(const Matrix& query, const Matrix& key,
                                         const Interrupt& interrupt) {
  const Matrix q = Transposed(query);
  const Matrix k = Transposed(key);
  Squares squares;
  for (std::int64_t i = 0; i < q.row_count; ++i) {
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    for (std::int64_t j = 0; j <= i; ++j) {
      const double ij = Dot(q.view().Row(i), k.view().Row(j));
      const double ji = Dot(q.view().Row(j), k.view().Row(i));
      if (i == j) {
        squares.form += ij * ij;
      } else {
        squares.form += ij * ij + ji * ji;
        squares.difference += 2 * (ij - ji) * (ij - ji);
      }
    }
  }
  return squares;
}

// Uses traces: |S|^2 = <A, B> and |S - S^T|^2 = 2 (|S|^2 - <C, C^T>) with A =
// query query^T, B = key key^T, C = query key^T, whose side is the number of
// rows of W_Q. If query = key, the two terms are the same sums in the same
// order.
absl::StatusOr<Squares> SquaresByTraces(const Matrix& query, const Matrix& key,
                                        const Interrupt& interrupt) {
  const MatrixView q = query.view();
  const MatrixView k = key.view();
  double form = 0;
  double transposed = 0;
  for (std::int64_t i = 0; i < query.row_count; ++i) {
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    for (std::int64_t j = 0; j <= i; ++j) {
      const double times = i == j ? 1 : 2;
      form += times * Dot(q.Row(i), q.Row(j)) * Dot(k.Row(i), k.Row(j));
      transposed += times * Dot(q.Row(i), k.Row(j)) * Dot(q.Row(j), k.Row(i));
    }
  }
  return Squares{form, 2 * (form - transposed)};
}

Squares SquaresOf(const Matrix& form) {
  Squares squares;
  const std::int64_t dim = form.row_count;
  for (std::int64_t i = 0; i < dim; ++i) {
    for (std::int64_t j = 0; j < dim; ++j) {
      const double ij = form.data[i * dim + j];
      const double ji = form.data[j * dim + i];
      squares.form += ij * ij;
      squares.difference += (ij - ji) * (ij - ji);
    }
  }
  return squares;
}

}  // namespace

absl::StatusOr<std::optional<double>> Asymmetry(const AttentionModel& model,
                                                const Interrupt& interrupt) {
  if (model.query_dim() != model.key_dim()) return std::nullopt;
  if (const BilinearForm* form = model.bilinear()) {
    return SquaresOf(form->weight).ratio();
  }
  const MultiHeadProjections* heads = model.multi_head();
  if (heads == nullptr) return std::nullopt;
  const Matrix& query = heads->query.weight;
  const Matrix& key = heads->key.weight;
  ATTENDANT_ASSIGN_OR_RETURN(const Squares squares,
                             query.column_count <= query.row_count
                                 ? SquaresOfEntries(query, key, interrupt)
                                 : SquaresByTraces(query, key, interrupt));
  return squares.ratio();
}

}  // namespace attendant
