// Which centroid is nearest to a row. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_LISTS_NEAREST_CENTROID_H_
#define ATTENDANT_CORE_SHORTLIST_LISTS_NEAREST_CENTROID_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/base/views.h"
#include "core/shortlist/keys/coded_query.h"

namespace attendant {

// Rows as queries of 8 bits, cut once for centroids that change. Immutable;
// thread-safe.
class CodedRows {
 public:
  // Of rows [n, dim], by thread_count >= 1 threads. 64 bytes a row and one a
  // component.
  CodedRows(MatrixView rows, std::int64_t thread_count);

  // Null if the row is too large or small for codes.
  const CutQuery* Of(std::int64_t row) const {
    const CutQuery& code = codes_[static_cast<std::size_t>(row)];
    return code.high == nullptr ? nullptr : &code;
  }

 private:
  AlignedBuffer<std::int8_t> planes_;
  std::vector<CutQuery> codes_;
};

// Compares rows with codes of the centroids, of 8 bits, and then with those
// centroids themselves that the codes' errors leave in question: the answer is
// that of all the floats, in a third of the time. Immutable; thread-safe.
class NearestCentroid {
 public:
  // What Find writes to beside its results, for one thread at a time; made
  // there for as many centroids as there are.
  class Scratch {
   private:
    friend class NearestCentroid;
    std::vector<CodedQuery> coded_rows;  // [kBlockRows]
    std::vector<float> scores;           // [kBlockRows, stride()]
    std::vector<float> greatest;         // of each part: [kBlockRows, parts]
    std::vector<float> float_scores;     // [centroids]
    std::vector<std::int32_t> positions;
  };

  // Rows that Find takes at once: their scores fit the second cache.
  static constexpr std::int64_t kBlockRows = 48;

  // At least 1 centroid; they must outlive the object.
  explicit NearestCentroid(MatrixView centroids);

  // nearest[i] is the centroid at the least Euclidean distance from row i, the
  // first of equals. At most kBlockRows rows of the centroids' dim.
  void Find(MatrixView rows, std::int32_t* nearest, Scratch& scratch) const;
  // The same of rows that were coded: row i is `first` + i of `coded`.
  void Find(MatrixView rows, const CodedRows& coded, std::int64_t first,
            std::int32_t* nearest, Scratch& scratch) const;

  // Without the centroids.
  std::int64_t memory_bytes() const {
    return codes_.memory_bytes() +
           static_cast<std::int64_t>(minus_half_square_norms_.size() *
                                     sizeof(float));
  }

 private:
  // Whose scores with a block of rows fit the first cache.
  static constexpr std::int64_t kPartCentroids = 256;
  static_assert(kPartCentroids % kCodeRows == 0);

  // `take(row, coded)` codes a row: false if it has no codes.
  template <typename Take>
  void FindRows(MatrixView rows, Take take, std::int32_t* nearest,
                Scratch& scratch) const;
  std::int32_t FindByFloats(std::span<const float> row, Scratch& scratch) const;
  // Scores all coded queries with a part of the centroids by their codes.
  void ScorePart(std::span<const CodeQuery> queries, std::int64_t part,
                 Scratch& scratch) const;
  // From such scores of all parts, for the coded row that is query `query`.
  std::int32_t FindByCodes(std::span<const float> row, const CodedQuery& coded,
                           std::int64_t query, Scratch& scratch) const;
  // |x - c|^2 / 2 = |x|^2 / 2 - (x . c - |c|^2 / 2): the greatest score wins.
  float Score(std::span<const float> row, std::int64_t centroid) const;

  std::int64_t part_count() const {
    return (centroids_.row_count + kPartCentroids - 1) / kPartCentroids;
  }
  // Of a row's scores: the centroids, filled up to whole blocks of codes.
  std::int64_t stride() const {
    return static_cast<std::int64_t>(codes_.scales().size());
  }

  MatrixView centroids_;
  std::vector<float> minus_half_square_norms_;
  double addition_error_ = 0;
  KeyCodes codes_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_LISTS_NEAREST_CENTROID_H_
