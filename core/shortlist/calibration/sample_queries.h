// Queries that a new index is tried on, with the keys they should find.
// Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_CALIBRATION_SAMPLE_QUERIES_H_
#define ATTENDANT_CORE_SHORTLIST_CALIBRATION_SAMPLE_QUERIES_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/softmax/score.h"
#include "core/base/views.h"

namespace attendant {

struct SampleOptions {
  ScoreKind score_kind = ScoreKind::kDot;
  std::int64_t neighbour_count = 0;
  std::uint64_t seed = 0;
  int thread_count = 1;  // >= 1; does not change the queries
  const std::atomic<bool>* cancelled = nullptr;
};

// A sample query is a key moved in a random direction by two thirds of the mean
// distance to the nearest other key; it is about as hard as a new point between
// the keys. The key itself would be found too easily, so it is not among the
// query's neighbours. Each query is accompanied by the unmoved key with its own
// neighbours, because real queries may be that close to what the keys have in
// common.
//
// Blends are sums of several keys, as the query of a history is: such a query
// may lie between all keys, and its neighbours in many lists. Immutable.
class SampleQueries {
 public:
  // Draws at most 200 queries from keys [n, dim], n >= 1, with inverse norms
  // [n] (see InverseNorm), none of which is NaN, and as many blends. Scores
  // every key three times per query. Deterministic for a seed and a kernel
  // level. Error: Cancelled.
  static absl::StatusOr<SampleQueries> Draw(
      MatrixView keys, std::span<const float> inverse_norms,
      const SampleOptions& options);

  std::int64_t count() const {
    return static_cast<std::int64_t>(neighbours_.size());
  }
  // Query i, [dim]; of norm about 1 under COSINE.
  std::span<const float> Query(std::int64_t i) const {
    return {queries_.data() + i * dim_, static_cast<std::size_t>(dim_)};
  }
  // Positions of the best keys for query i, best first. As many as the options
  // say, or all others if there are fewer; for the first few queries as many as
  // the greatest depth.
  std::span<const std::int32_t> Neighbours(std::int64_t i) const {
    return neighbours_[i];
  }
  // The key that query i was moved from, and its neighbours, at most as many as
  // the options say.
  std::span<const float> Key(std::int64_t i) const {
    return {keys_.data() + i * dim_, static_cast<std::size_t>(dim_)};
  }
  std::span<const std::int32_t> KeyNeighbours(std::int64_t i) const {
    return key_neighbours_[i];
  }
  // Keys of blend i of [0, count).
  static std::int64_t PartsOfBlend(std::int64_t i) {
    return i % 2 == 0 ? 2 : 5;
  }
  // Blend i, and its neighbours, at most as many as the options say; its own
  // keys are not among them.
  std::span<const float> Blend(std::int64_t i) const {
    return {blends_.data() + i * dim_, static_cast<std::size_t>(dim_)};
  }
  std::span<const std::int32_t> BlendNeighbours(std::int64_t i) const {
    return blend_neighbours_[i];
  }
  // Numbers of neighbours to learn for, ascending: that of the options times 1,
  // 4, 16 and 64, except those beyond a quarter of the keys, which would be
  // spread over all lists. Never empty.
  const std::vector<std::int64_t>& depths() const { return depths_; }
  // True if query i has enough neighbours for depth d.
  bool Reaches(std::int64_t i, std::size_t d) const;

 private:
  friend class SampleDraw;

  std::int64_t dim_ = 0;
  std::vector<float> queries_;  // [count, dim]
  std::vector<float> keys_;     // [count, dim]
  std::vector<float> blends_;   // [count, dim]
  std::vector<std::vector<std::int32_t>> neighbours_;
  std::vector<std::vector<std::int32_t>> key_neighbours_;
  std::vector<std::vector<std::int32_t>> blend_neighbours_;
  std::vector<std::int64_t> depths_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_CALIBRATION_SAMPLE_QUERIES_H_
