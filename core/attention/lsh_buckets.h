// Buckets of directions: argmax([x R; -x R]) for random R (Andoni et al. 2015,
// as used by Kitaev et al. 2020). Vectors of one direction share a bucket;
// the smaller the angle, the likelier it is.
#ifndef ATTENDANT_CORE_ATTENTION_LSH_BUCKETS_H_
#define ATTENDANT_CORE_ATTENTION_LSH_BUCKETS_H_

#include <cstdint>

#include "core/base/aligned_buffer.h"

namespace attendant {

// Thread-safe: immutable.
class LshBuckets {
 public:
  // bucket_count even, >= 2; dim, round_count >= 1.
  LshBuckets(std::int64_t dim, std::int64_t bucket_count,
             std::int64_t round_count, std::uint64_t seed);

  std::int64_t bucket_count() const { return bucket_count_; }
  std::int64_t round_count() const { return round_count_; }

  // buckets [round_count] receives the bucket of `row` [dim] in each round, in
  // [0, bucket_count). Of equal projections the first wins; finite rows only.
  void Of(const float* row, std::int32_t* buckets) const;

  // R of a round, transposed: direction i, [dim], of bucket_count / 2.
  const float* direction(std::int64_t round, std::int64_t i) const {
    return directions_.data() + (round * bucket_count_ / 2 + i) * dim_;
  }

 private:
  const std::int64_t dim_;
  const std::int64_t bucket_count_;
  const std::int64_t round_count_;
  AlignedBuffer<float> directions_;  // [round_count, bucket_count / 2, dim]
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_LSH_BUCKETS_H_
