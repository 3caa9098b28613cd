// A block of queries and what they have gathered from the keys so far.
// Internal.
#ifndef ATTENDANT_CORE_ATTENTION_HEADS_QUERY_BLOCK_H_
#define ATTENDANT_CORE_ATTENTION_HEADS_QUERY_BLOCK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/attention/heads/key_tile.h"
#include "core/attention/heads/multi_head.h"
#include "core/attention/softmax/state.h"
#include "core/base/aligned_buffer.h"

namespace attendant {

// The most queries in a block: enough that projecting each key again for each
// block costs little compared with attending to it, and few enough that memory
// stays constant.
inline constexpr std::int64_t kBlockQueries = 2048;
// The most bytes that a block holds for its queries; one query alone may take
// more. Scratch adds at most half of that.
inline constexpr std::int64_t kBlockBytes = 8 << 20;

// Order of calls: Start, Add for each tile, Finish; then optionally MeanLogit,
// and MeanWeights for each tile again. Not thread-safe.
class QueryBlock {
 public:
  // `input` must be valid and outlive the object.
  explicit QueryBlock(const MultiHeadInput& input);

  // Returns the most queries that fit into a block: fewer if heads are wider.
  std::int64_t capacity() const { return capacity_; }

  // Starts a new block of queries [first, first + count), count in [1,
  // capacity]. `weights`, if not null, is the whole of [head_count, m, n];
  // Finish completes the rows of these queries in it.
  absl::Status Start(std::int64_t first, std::int64_t count, float* weights);

  std::int64_t first() const { return first_; }
  std::int64_t count() const { return count_; }
  std::int64_t last() const { return first_ + count_ - 1; }

  // Attends to `tile`, which was loaded for last().
  absl::Status Add(const KeyTile& tile);

  // Writes the rows of these queries in outputs [m, output_dim].
  absl::Status Finish(float* outputs);

  // Stores the weights, averaged over heads, to mean_weights [count,
  // tile.size()].
  absl::Status MeanWeights(const KeyTile& tile, float* mean_weights);

  // Returns the mean over heads of the logits of query first + i, weighted
  // under SOFTMAX and plain otherwise. 0 if the query attended to nothing.
  double MeanLogit(std::int64_t i) const;

  // Returns the number of pairs that Add has scored since construction, counted
  // once per head.
  std::int64_t scored_count() const { return scored_count_; }

 private:
  absl::Status ProjectQueries(std::int64_t first, std::int64_t count);
  absl::Status Score(std::int64_t head, std::int64_t first, std::int64_t count,
                     const KeyTile& tile);
  void Mask(std::int64_t first, std::int64_t count, const KeyTile& tile);
  void KeepLogits(std::int64_t head, std::int64_t first, std::int64_t count,
                  const KeyTile& tile);
  void AddSoftmax(std::int64_t row, std::int64_t i, std::int64_t n);
  void AddActivated(std::int64_t row, std::int64_t i, std::int64_t n);
  void Activate(float* logits, std::int64_t n);
  void NormaliseWeights();

  std::int64_t RowOf(std::int64_t head, std::int64_t i) const {
    return head * count_ + i;
  }
  SoftmaxPartition& partition(std::int64_t row) { return partitions_[row]; }
  const SoftmaxPartition& partition(std::int64_t row) const {
    return partitions_[row];
  }

  const MultiHeadInput& input_;
  const std::int64_t head_count_;
  const std::int64_t key_dim_;    // of a head
  const std::int64_t value_dim_;  // of a head
  const bool softmax_;
  const std::int64_t capacity_;
  std::int64_t first_ = 0;
  std::int64_t count_ = 0;
  std::int64_t scored_count_ = 0;
  float* weights_ = nullptr;
  // Projected queries times scale / temperature [heads, count, key_dim].
  AlignedBuffer<float> queries_;
  std::vector<double> max_norms_;             // of queries_, by head
  std::vector<SoftmaxPartition> partitions_;  // [heads, count]
  AlignedBuffer<double> pooled_;              // [heads, count, value_dim]
  // Scratch for some of the queries at a time.
  AlignedBuffer<float> logits_;     // [kQueries, kTileKeys], later weights
  AlignedBuffer<float> negated_;    // [kTileKeys]
  AlignedBuffer<float> tile_sums_;  // [kQueries, value_dim]
  AlignedBuffer<float> joined_;     // [kQueries, heads x value_dim], for W_O
  std::vector<std::int64_t> live_;  // unmasked keys of the tile [kQueries]
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_HEADS_QUERY_BLOCK_H_
