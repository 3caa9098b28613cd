// Buckets of directions: argmax([x R; -x R]) for random R (Andoni et al. 2015,
// as used by Kitaev et al. 2020). Vectors of equal direction share a bucket;
// the smaller the angle between two vectors, the more likely they share one.
#ifndef ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_LSH_BUCKETS_H_
#define ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_LSH_BUCKETS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/base/aligned_buffer.h"
#include "core/base/interrupt.h"

namespace attendant {

// All the parameters that buckets depend on.
struct LshShape {
  std::int64_t dim = 1;           // >= 1
  std::int64_t bucket_count = 2;  // even, >= 2
  std::int64_t round_count = 1;   // >= 1
  std::uint64_t seed = 1;

  bool operator==(const LshShape&) const = default;
};

// Immutable, hence thread-safe.
class LshBuckets {
 public:
  // Draws the random directions. Cancelled and DeadlineExceeded from the
  // interrupt.
  static absl::StatusOr<std::shared_ptr<const LshBuckets>> Draw(
      const LshShape& shape, const Interrupt& interrupt);

  const LshShape& shape() const { return shape_; }
  std::int64_t bucket_count() const { return shape_.bucket_count; }
  std::int64_t round_count() const { return shape_.round_count; }

  // Stores the bucket of `row` [dim] in each round, in [0, bucket_count), to
  // buckets [round_count]. `row` must be finite. Of equal projections the first
  // wins.
  void Of(const float* row, std::int32_t* buckets) const;

  // Returns direction i, [dim], of the bucket_count / 2 directions of a round:
  // row i of the transposed R.
  const float* direction(std::int64_t round, std::int64_t i) const {
    return directions_.data() +
           (round * shape_.bucket_count / 2 + i) * shape_.dim;
  }

 private:
  explicit LshBuckets(const LshShape& shape);

  const LshShape shape_;
  AlignedBuffer<float> directions_;  // [round_count, bucket_count / 2, dim]
};

// Keeps the buckets drawn last, for successive layers of one shape. Not
// thread-safe.
class LastLshBuckets {
 public:
  // Draws new buckets only if `shape` differs from the last. Errors as for
  // LshBuckets::Draw.
  absl::StatusOr<std::shared_ptr<const LshBuckets>> Get(
      const LshShape& shape, const Interrupt& interrupt);

 private:
  std::shared_ptr<const LshBuckets> last_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_LSH_BUCKETS_H_
