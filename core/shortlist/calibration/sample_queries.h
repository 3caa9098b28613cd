// Queries that an index tries itself on when it is built, with what they should
// find. Internal.
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
  int thread_count = 1;  // >= 1; the queries are the same for any
  const std::atomic<bool>* cancelled = nullptr;
};

// A sample query is a key, moved in a random direction by two thirds of the
// mean distance to the nearest other key, which makes it about as hard as a new
// point between the keys; that key itself, found too easily, is none of its
// neighbours. Beside it stands the key as it is, with its own: real queries may
// be as near to what the keys have in common. Immutable.
class SampleQueries {
 public:
  // At most 200 queries of keys [n, dim], n >= 1, with inverse norms [n] (see
  // InverseNorm; none is NaN). Scores every key twice a query. Deterministic
  // for a seed and a kernel level. Error: Cancelled.
  static absl::StatusOr<SampleQueries> Draw(
      MatrixView keys, std::span<const float> inverse_norms,
      const SampleOptions& options);

  std::int64_t count() const {
    return static_cast<std::int64_t>(neighbours_.size());
  }
  // [dim]; under COSINE about of norm 1.
  std::span<const float> Query(std::int64_t i) const {
    return {queries_.data() + i * dim_, static_cast<std::size_t>(dim_)};
  }
  // Positions of the keys that score best, in that order: as many as the
  // options say, or all others; of the first few queries as many as the last of
  // the depths.
  std::span<const std::int32_t> Neighbours(std::int64_t i) const {
    return neighbours_[static_cast<std::size_t>(i)];
  }
  // The key that query i was moved from, and its neighbours, as many as the
  // options say.
  std::span<const float> Key(std::int64_t i) const {
    return {keys_.data() + i * dim_, static_cast<std::size_t>(dim_)};
  }
  std::span<const std::int32_t> KeyNeighbours(std::int64_t i) const {
    return key_neighbours_[static_cast<std::size_t>(i)];
  }
  // Numbers of neighbours to learn for, ascending: those of the options times
  // 1, 4, 16 and 64, but for those beyond a quarter of the keys, which would be
  // spread over everything. At least one.
  const std::vector<std::int64_t>& depths() const { return depths_; }
  // Whether query i has neighbours enough for depth d.
  bool Reaches(std::int64_t i, std::size_t d) const;

 private:
  friend class SampleDraw;

  std::int64_t dim_ = 0;
  std::vector<float> queries_;  // [count, dim]
  std::vector<float> keys_;     // [count, dim]
  std::vector<std::vector<std::int32_t>> neighbours_;
  std::vector<std::vector<std::int32_t>> key_neighbours_;
  std::vector<std::int64_t> depths_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_CALIBRATION_SAMPLE_QUERIES_H_
