// Buckets of keys by random directions, in several rounds. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_KINDS_ANGULAR_BUCKETS_H_
#define ATTENDANT_CORE_SHORTLIST_KINDS_ANGULAR_BUCKETS_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/byte_stream.h"
#include "core/base/views.h"

namespace attendant {

struct AngularOptions {
  std::int64_t round_count = 1;
  // Each direction has two buckets per range of norms: keys along the direction
  // and keys against it.
  std::int64_t direction_count = 1;  // per round
  std::int64_t norm_range_count = 1;
  std::uint64_t seed = 0;
  const std::atomic<bool>* cancelled = nullptr;
};

// Buckets are numbered by round, then by range of norms, then by direction; in
// a range, the buckets along the directions come first. Immutable once built;
// thread-safe.
class AngularBuckets {
 public:
  // keys [n, dim] are multiplied by factors [n], after which no norm is above
  // about 1. bucket_of[r * n + p] receives the bucket of key p in round r.
  // Returns false if cancelled.
  bool Build(MatrixView keys, std::span<const float> factors,
             const AngularOptions& options,
             std::vector<std::int32_t>& bucket_of);

  std::int64_t bucket_count() const {
    return static_cast<std::int64_t>(scores_of_mean_.size());
  }
  std::int64_t round_count() const { return options_.round_count; }
  // Number of buckets that a query itself belongs to: one per round and range
  // of norms.
  std::int64_t own_count() const {
    return options_.round_count * options_.norm_range_count;
  }
  // Returns the positions of the keys in `bucket`, ascending.
  std::span<const std::int32_t> KeysOf(std::int64_t bucket) const;

  // Sets scores [buckets] to the score expected of the best key of each bucket,
  // for a query of norm 1 in the direction of `query`. The buckets that the
  // query itself belongs to, in every range of norms, score above all others;
  // empty buckets score below all others. Does not allocate once `scores` has
  // grown.
  void Score(std::span<const float> query, std::vector<float>& scores) const;

  std::int64_t memory_bytes() const;

  void Save(ByteSink& sink) const;
  // Loads the buckets of key_count keys of `dim`. DataLoss if the bytes are no
  // such buckets.
  static absl::StatusOr<AngularBuckets> Load(ByteSource& source,
                                             std::int64_t key_count,
                                             std::int64_t dim);

 private:
  std::int64_t BucketsPerRound() const {
    return options_.norm_range_count * 2 * options_.direction_count;
  }

  AngularOptions options_;
  std::int64_t dim_ = 0;
  std::int64_t key_count_ = 0;
  // [rounds x directions, dim], of norm 1.
  std::vector<float> directions_;
  std::vector<std::int64_t> offsets_;  // [buckets + 1]
  std::vector<std::int32_t> members_;  // [rounds, keys]
  // For each bucket, the mean product of its keys with its direction, and how
  // far the best key is expected to exceed the score that follows from it.
  std::vector<float> scores_of_mean_;
  std::vector<float> reaches_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_ANGULAR_BUCKETS_H_
