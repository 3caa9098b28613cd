// Joins the outputs of many queries head by head. Internal.
#ifndef ATTENDANT_CORE_ATTENTION_HEADS_HEAD_JOIN_H_
#define ATTENDANT_CORE_ATTENTION_HEADS_HEAD_JOIN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/attention/heads/multi_head.h"
#include "core/base/aligned_buffer.h"

namespace attendant {

// Works on a block of queries at a time. Order of calls: Start, then StartHead
// and Adds for each head, then Finish. Memory: SumsOfQuery for each query of a
// block, and one head's part of W_O. Not thread-safe.
class HeadJoin {
 public:
  // Returns the doubles held for each query: output_dim with W_O, else 0.
  static std::int64_t SumsOfQuery(const MultiHeadInput& input) {
    return input.heads && input.heads->output ? input.output_dim() : 0;
  }

  // For blocks of at most `capacity` queries. `input` must be valid and outlive
  // the object.
  HeadJoin(const MultiHeadInput& input, std::int64_t capacity);

  // Starts a block of `count` queries, whose outputs [count, output_dim] Finish
  // completes.
  void Start(std::int64_t count, float* outputs);

  // The Adds that follow are for this head. Call once per head and block.
  void StartHead(std::int64_t head);

  // pooled [head_value_dim] is the pooled value of query i, in [0, count), in
  // the current head. `is_empty`: the query may attend to no key in any head.
  void Add(std::int64_t i, const float* pooled, bool is_empty);

  // Completes the outputs, which are zeros for empty queries. InvalidArgument
  // if one overflows.
  absl::Status Finish();

 private:
  bool projects() const { return SumsOfQuery(input_) > 0; }

  const MultiHeadInput& input_;
  const std::int64_t value_dim_;
  const std::int64_t output_dim_;
  std::int64_t count_ = 0;
  float* outputs_ = nullptr;
  std::int64_t head_ = 0;
  std::vector<bool> is_empty_;  // [capacity]
  // Only with W_O.
  AlignedBuffer<float> weight_;   // of the head [output_dim, value_dim]
  AlignedBuffer<float> product_;  // of one query [output_dim]
  std::vector<double> sums_;      // [capacity, output_dim]
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_HEADS_HEAD_JOIN_H_
