// Attention within the buckets of a locality-sensitive hash.
//
// Reformer (Kitaev et al. 2020, sec. 2): queries and keys are hashed by their
// direction in several rounds. A query attends exactly to the union of the keys
// that share its bucket in some round, and the softmax is over that union. The
// paper computes the same union by weighting its rounds; it loses keys of the
// union only where it sorts by bucket and cuts into chunks, which we don't do.
//
// Queries and keys may differ. Where they are equal, as in the paper, a token
// shares its own bucket and so always attends to itself; the paper allows that
// only if there is no other key. A query that shares no bucket with a key that
// it may attend to attends to all the keys that it may.
#ifndef ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_LSH_ATTENTION_H_
#define ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_LSH_ATTENTION_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/attention/approximations/approximation.h"
#include "core/attention/approximations/lsh_buckets.h"
#include "core/attention/heads/multi_head.h"
#include "core/base/aligned_buffer.h"

namespace attendant {

// Returns the shape of the buckets that `input` is hashed into; `input` and
// `options` must be valid together. The number of buckets never exceeds the
// number of keys, rounded up to even.
LshShape LshShapeOf(const MultiHeadInput& input,
                    const LshAttentionOptions& options);

// What one query found in one head. The spans view scratch memory.
struct LshFound {
  std::span<const std::int32_t> positions;  // of keys in the input
  std::span<const float> weights;           // sum to 1, if any
  double mean_logit = 0;                    // weighted mean
};

// Computes one head at a time, so memory does not grow with the number of
// heads: the keys and, if the model projects them, the values of one head, [n,
// head_key_dim + head_value_dim] floats, valid up to kMaxLshBytes; and 8 bytes
// for each round and key. Not thread-safe.
class LshAttention {
 public:
  // `input` must be valid and outlive the object; `buckets` must have the shape
  // LshShapeOf.
  LshAttention(const MultiHeadInput& input,
               std::shared_ptr<const LshBuckets> buckets);

  // Loads the keys and values of a head, unless that head was loaded last. Call
  // before Attend; heads may come in any order. InvalidArgument and interrupts
  // as for AttendMultiHead.
  absl::Status LoadHead(std::int64_t head);

  // Attends with query i in the loaded head. pooled [head_value_dim] receives
  // the weighted sum of values, zeros if there is none; `found` receives the
  // keys that the sum is over, valid until the next call. InvalidArgument as
  // for AttendMultiHead.
  absl::Status Attend(std::int64_t i, float* pooled, LshFound& found);

  // Returns the number of pairs scored, counted once per head.
  std::int64_t scored_count() const { return scored_count_; }

 private:
  // The keys of one round, bucket by bucket.
  struct Table {
    std::vector<std::int32_t> begins;  // [bucket_count + 1], into rows
    std::vector<std::int32_t> rows;    // [row_count]
  };

  std::int64_t row_count() const {
    return static_cast<std::int64_t>(positions_.size());
  }
  bool projects_values() const { return values_.size() > 0; }
  const float* ValueAt(std::int32_t row) const;
  // Loads the keys and values of the rows [first, first + count), at most a
  // tile.
  absl::Status LoadRows(std::int64_t first, std::int64_t count);
  // Fills the tables from the rows' buckets [row_count, round_count].
  void FillTables(const std::vector<std::int32_t>& buckets);
  void FindRows(std::int64_t query);
  absl::Status LoadQuery(std::int64_t i);

  const MultiHeadInput& input_;
  const std::shared_ptr<const LshBuckets> hash_;
  const std::int64_t key_dim_;                 // of a head
  const std::int64_t value_dim_;               // of a head
  const std::vector<std::int32_t> positions_;  // in the input, of each row
  AlignedBuffer<float> gathered_;              // a tile of input rows
  std::int64_t scored_count_ = 0;
  bool has_checked_values_ = false;  // values that no model projects
  // For the loaded head.
  std::int64_t head_ = 0;
  bool is_loaded_ = false;
  AlignedBuffer<float> keys_;    // [row_count, key_dim]
  AlignedBuffer<float> values_;  // [row_count, value_dim]; empty: in the input
  std::vector<Table> tables_;    // [round_count]
  // For the current query.
  AlignedBuffer<float> query_;               // [key_dim]
  std::vector<std::int32_t> query_buckets_;  // [round_count]
  std::vector<std::uint64_t> met_;           // one bit per row, 0 between calls
  std::vector<std::int32_t> rows_;
  std::vector<double> sum_;  // [value_dim]
  std::vector<std::int32_t> found_positions_;
  std::vector<float> found_weights_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_LSH_ATTENTION_H_
