// Which centroid is nearest to a row. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_NEAREST_CENTROID_H_
#define ATTENDANT_CORE_SHORTLIST_NEAREST_CENTROID_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/views.h"
#include "core/shortlist/key_codes.h"

namespace attendant {

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
  // first of equals. At most kBlockRows rows of the centroids' dim. If
  // squared_distances is not null it receives one a row.
  void Find(MatrixView rows, std::int32_t* nearest, float* squared_distances,
            Scratch& scratch) const;

  // Without the centroids.
  std::int64_t memory_bytes() const {
    return codes_.memory_bytes() +
           static_cast<std::int64_t>(half_square_norms_.size() * sizeof(float));
  }

 private:
  // Whose scores with a block of rows fit the first cache.
  static constexpr std::int64_t kPartCentroids = 256;
  static_assert(kPartCentroids % kCodeRows == 0);

  // |x - c|^2 / 2 = |x|^2 / 2 - (x . c - |c|^2 / 2): the greatest score wins.
  struct Best {
    std::int32_t centroid = 0;
    float score = 0;
  };

  Best FindByFloats(std::span<const float> row, Scratch& scratch) const;
  // Scores all coded queries with a part of the centroids by their codes.
  void ScorePart(std::span<const CodeQuery> queries, std::int64_t part,
                 Scratch& scratch) const;
  // From such scores of all parts, for the coded row that is query `query`.
  Best FindByCodes(std::span<const float> row, const CodedQuery& coded,
                   std::int64_t query, Scratch& scratch) const;
  float Score(std::span<const float> row, std::int64_t centroid) const;

  std::int64_t part_count() const {
    return (centroids_.row_count + kPartCentroids - 1) / kPartCentroids;
  }
  // Of a row's scores: the centroids, filled up to whole blocks of codes.
  std::int64_t stride() const {
    return static_cast<std::int64_t>(codes_.scales().size());
  }

  MatrixView centroids_;
  std::vector<float> half_square_norms_;
  double addition_error_ = 0;
  KeyCodes codes_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_NEAREST_CENTROID_H_
