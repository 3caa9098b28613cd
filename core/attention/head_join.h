// Outputs of many queries, put together head by head. Internal.
#ifndef ATTENDANT_CORE_ATTENTION_HEAD_JOIN_H_
#define ATTENDANT_CORE_ATTENTION_HEAD_JOIN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/attention/multi_head.h"
#include "core/base/aligned_buffer.h"

namespace attendant {

// Of `count` queries. Memory: with W_O [count, output_dim] doubles, and W_O's
// part of one head. Not thread-safe.
class HeadJoin {
 public:
  // `input` must be valid; it and outputs [count, output_dim] must outlive the
  // object.
  HeadJoin(const MultiHeadInput& input, std::int64_t count, float* outputs);

  // What Add gives from now on is of this head. Each head once.
  void StartHead(std::int64_t head);

  // pooled [head_value_dim]: what query i, in [0, count), found in the head.
  // `is_empty`: it may attend to nothing, in any head.
  void Add(std::int64_t i, const float* pooled, bool is_empty);

  // Completes the outputs, which are zeros for empty queries. InvalidArgument:
  // one overflows.
  absl::Status Finish();

 private:
  bool projects() const { return input_.heads && input_.heads->output; }

  const MultiHeadInput& input_;
  const std::int64_t count_;
  const std::int64_t value_dim_;
  const std::int64_t output_dim_;
  float* const outputs_;
  std::int64_t head_ = 0;
  std::vector<bool> is_empty_;  // [count]
  // Only with W_O.
  AlignedBuffer<float> weight_;   // of the head [output_dim, value_dim]
  AlignedBuffer<float> product_;  // of one query [output_dim]
  std::vector<double> sums_;      // [count, output_dim]
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_HEAD_JOIN_H_
