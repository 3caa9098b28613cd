// Buckets of directions: argmax([x R; -x R]) for random R (Andoni et al. 2015,
// as used by Kitaev et al. 2020). Vectors of one direction share a bucket;
// the smaller the angle, the likelier it is.
#ifndef ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_LSH_BUCKETS_H_
#define ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_LSH_BUCKETS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/base/aligned_buffer.h"
#include "core/base/interrupt.h"

namespace attendant {

// All that buckets depend on.
struct LshShape {
  std::int64_t dim = 1;           // >= 1
  std::int64_t bucket_count = 2;  // even, >= 2
  std::int64_t round_count = 1;   // >= 1
  std::uint64_t seed = 1;

  bool operator==(const LshShape&) const = default;
};

// Thread-safe: immutable.
class LshBuckets {
 public:
  // Cancelled and DeadlineExceeded from the interrupt.
  static absl::StatusOr<std::shared_ptr<const LshBuckets>> Draw(
      const LshShape& shape, const Interrupt& interrupt);

  const LshShape& shape() const { return shape_; }
  std::int64_t bucket_count() const { return shape_.bucket_count; }
  std::int64_t round_count() const { return shape_.round_count; }

  // buckets [round_count] receives the bucket of `row` [dim] in each round, in
  // [0, bucket_count). Of equal projections the first wins; finite rows only.
  void Of(const float* row, std::int32_t* buckets) const;

  // R of a round, transposed: direction i, [dim], of bucket_count / 2.
  const float* direction(std::int64_t round, std::int64_t i) const {
    return directions_.data() +
           (round * shape_.bucket_count / 2 + i) * shape_.dim;
  }

 private:
  explicit LshBuckets(const LshShape& shape);

  const LshShape shape_;
  AlignedBuffer<float> directions_;  // [round_count, bucket_count / 2, dim]
};

// What was drawn last, for layers of one shape after each other. Not
// thread-safe.
class LastLshBuckets {
 public:
  // Draws if the shape is another than the last. As LshBuckets::Draw.
  absl::StatusOr<std::shared_ptr<const LshBuckets>> Get(
      const LshShape& shape, const Interrupt& interrupt);

 private:
  std::shared_ptr<const LshBuckets> last_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_LSH_BUCKETS_H_
