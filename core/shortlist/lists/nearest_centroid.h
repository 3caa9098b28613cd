// Finds the centroid nearest to a row. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_LISTS_NEAREST_CENTROID_H_
#define ATTENDANT_CORE_SHORTLIST_LISTS_NEAREST_CENTROID_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/base/views.h"
#include "core/shortlist/keys/coded_query.h"

namespace attendant {

// Rows as queries of 8 bits, coded once and used for centroids that change.
// Immutable; thread-safe.
class CodedRows {
 public:
  // Codes rows [n, dim] with thread_count >= 1 threads. Takes 64 bytes per row
  // and one byte per component.
  CodedRows(MatrixView rows, std::int64_t thread_count);

  // Null if the row is too large or too small to be coded.
  const CutQuery* Of(std::int64_t row) const {
    const CutQuery& code = codes_[row];
    return code.high == nullptr ? nullptr : &code;
  }

 private:
  AlignedBuffer<std::int8_t> planes_;
  std::vector<CutQuery> codes_;
};

// Compares rows with codes of 8 bits of the centroids, and then with those
// centroids themselves that the errors of the codes leave in question: the
// answer is that of all the floats, in a third of the time. Immutable;
// thread-safe.
class NearestCentroid {
 public:
  // Working memory of Find, for one thread at a time; grows to fit the number
  // of centroids.
  class Scratch {
   private:
    friend class NearestCentroid;
    std::vector<CodedQuery> coded_rows;  // [kBlockRows]
    std::vector<float> scores;           // [kBlockRows, stride()]
    std::vector<float> greatest;         // per part: [kBlockRows, parts]
    std::vector<float> float_scores;     // [centroids]
    std::vector<std::int32_t> positions;
  };

  // Most rows that Find takes at once: their scores fit the second-level cache.
  static constexpr std::int64_t kBlockRows = 48;

  // At least 1 centroid. The centroids must outlive the object.
  explicit NearestCentroid(MatrixView centroids);

  // Sets nearest[i] to the centroid at the least Euclidean distance from row i,
  // the first of equals. At most kBlockRows rows of the centroids' dim.
  void Find(MatrixView rows, std::int32_t* nearest, Scratch& scratch) const;
  // As above for rows that are already coded: row i is row first + i of
  // `coded`.
  void Find(MatrixView rows, const CodedRows& coded, std::int64_t first,
            std::int32_t* nearest, Scratch& scratch) const;

  // Does not count the centroids.
  std::int64_t memory_bytes() const {
    return codes_.memory_bytes() +
           static_cast<std::int64_t>(minus_half_square_norms_.size() *
                                     sizeof(float));
  }

 private:
  // Centroids whose scores with a block of rows fit the first-level cache.
  static constexpr std::int64_t kPartCentroids = 256;
  static_assert(kPartCentroids % kCodeRows == 0);

  // `take(row, coded)` codes a row; returns false if it has no codes.
  template <typename Take>
  void FindRows(MatrixView rows, Take take, std::int32_t* nearest,
                Scratch& scratch) const;
  std::int32_t FindByFloats(std::span<const float> row, Scratch& scratch) const;
  // Scores all coded queries against one part of the centroids, by codes.
  void ScorePart(std::span<const CodeQuery> queries, std::int64_t part,
                 Scratch& scratch) const;
  // Finds the nearest centroid from the scores of all parts, for `row`, which
  // is coded as query `query`.
  std::int32_t FindByCodes(std::span<const float> row, const CodedQuery& coded,
                           std::int64_t query, Scratch& scratch) const;
  // |x - c|^2 / 2 = |x|^2 / 2 - (x . c - |c|^2 / 2): the greatest score wins.
  float Score(std::span<const float> row, std::int64_t centroid) const;

  std::int64_t part_count() const {
    return (centroids_.row_count + kPartCentroids - 1) / kPartCentroids;
  }
  // Scores per row: the number of centroids, rounded up to whole blocks.
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
