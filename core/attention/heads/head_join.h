// Outputs of many queries, put together head by head. Internal.
#ifndef ATTENDANT_CORE_ATTENTION_HEADS_HEAD_JOIN_H_
#define ATTENDANT_CORE_ATTENTION_HEADS_HEAD_JOIN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/attention/heads/multi_head.h"
#include "core/base/aligned_buffer.h"

namespace attendant {

// A block of queries at a time: Start, then StartHead and Add for each head,
// then Finish. Memory: SumsOfQuery for each query of a block, and W_O's part of
// one head. Not thread-safe.
class HeadJoin {
 public:
  // Doubles held for each query: output_dim with W_O, else none.
  static std::int64_t SumsOfQuery(const MultiHeadInput& input) {
    return input.heads && input.heads->output ? input.output_dim() : 0;
  }

  // Of blocks of at most `capacity` queries. `input` must be valid and outlive
  // the object.
  HeadJoin(const MultiHeadInput& input, std::int64_t capacity);

  // Of `count` queries, whose outputs [count, output_dim] Finish completes.
  void Start(std::int64_t count, float* outputs);

  // What Add gives from now on is of this head. Each head once a block.
  void StartHead(std::int64_t head);

  // pooled [head_value_dim]: what query i, in [0, count), found in the head.
  // `is_empty`: it may attend to nothing, in any head.
  void Add(std::int64_t i, const float* pooled, bool is_empty);

  // Completes the outputs, which are zeros for empty queries. InvalidArgument:
  // one overflows.
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
