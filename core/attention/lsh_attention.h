// Attention within the buckets of a locality-sensitive hash.
//
// Reformer (Kitaev et al. 2020, sec. 2): queries and keys are hashed by their
// direction in several rounds; a query attends, exactly, to the union of the
// keys that share its bucket in some round, and the softmax is over those. We
// take the union itself, where they sort by bucket, cut into chunks and weigh
// the rounds; and queries and keys may differ. A query that shares no bucket
// with a key that it may attend to attends to all that it may.
#ifndef ATTENDANT_CORE_ATTENTION_LSH_ATTENTION_H_
#define ATTENDANT_CORE_ATTENTION_LSH_ATTENTION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/attention/approximation.h"
#include "core/attention/lsh_buckets.h"
#include "core/attention/multi_head.h"
#include "core/base/aligned_buffer.h"

namespace attendant {

// What one query found in one head. Views of scratch.
struct LshFound {
  std::span<const std::int32_t> positions;  // of keys in the input
  std::span<const float> weights;           // their sum is 1, if any
  double mean_logit = 0;                    // by weight
};

// Keys and values of all heads, projected and hashed. Memory: those, [n, heads
// x (head_key_dim + head_value_dim)] floats, and 8 bytes for each head, round
// and key. Not thread-safe.
class LshAttention {
 public:
  // `input` and `options` must be valid together; `input` must outlive the
  // object.
  LshAttention(const MultiHeadInput& input, const LshOptions& options);

  // Takes in the keys and values. InvalidArgument and interrupts as of
  // AttendMultiHead. Once, before the others.
  absl::Status Load();

  // Attends with query i: output [output_dim] receives what AttendMultiHead
  // gives for what it found, and found [heads] what that was, until the next
  // call. InvalidArgument as of AttendMultiHead.
  absl::Status Attend(std::int64_t i, float* output,
                      std::vector<LshFound>& found);

  // Pairs scored, once for each head.
  std::int64_t scored_count() const { return scored_count_; }

 private:
  // Where the keys of one head and round lie, bucket by bucket.
  struct Table {
    std::vector<std::int32_t> begins;  // [bucket_count + 1], into rows
    std::vector<std::int32_t> rows;    // [row_count_]
  };

  const float* keys(std::int64_t head) const {
    return keys_.data() + head * row_capacity_ * key_dim_;
  }
  const float* values(std::int64_t head) const {
    return values_.data() + head * row_capacity_ * value_dim_;
  }
  // From the buckets of its rows [row_capacity, round_count].
  void FillTables(std::int64_t head, const std::int32_t* buckets);
  bool MayAttend(std::int64_t query, std::int64_t row) const;
  void FindRows(std::int64_t head, std::int64_t query);
  absl::Status AttendHead(std::int64_t head, std::int64_t query, float* pooled,
                          LshFound& found);
  absl::Status WriteOutput(bool is_empty, float* output) const;

  const MultiHeadInput& input_;
  const LshOptions options_;
  const std::int64_t head_count_;
  const std::int64_t key_dim_;    // of a head
  const std::int64_t value_dim_;  // of a head
  const std::int64_t row_capacity_;
  const LshBuckets hash_;
  std::int64_t row_count_ = 0;           // of keys not masked for all
  std::vector<std::int32_t> positions_;  // of the rows in the input
  AlignedBuffer<float> keys_;            // [heads, row_capacity, key_dim]
  AlignedBuffer<float> values_;          // [heads, row_capacity, value_dim]
  std::vector<Table> tables_;            // [heads, round_count]
  std::int64_t scored_count_ = 0;
  // Of one query.
  AlignedBuffer<float> query_;               // [key_dim]
  std::vector<std::int32_t> query_buckets_;  // [round_count]
  std::vector<std::uint64_t> met_;           // a bit a row, 0 between calls
  std::vector<std::int32_t> rows_;
  std::vector<double> sum_;    // [value_dim]
  std::vector<float> joined_;  // [heads x value_dim]
  // By head, what Attend found.
  std::vector<std::vector<std::int32_t>> found_positions_;
  std::vector<std::vector<float>> found_weights_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_LSH_ATTENTION_H_
