#include "core/attention/heads/head_join.h"

#include <algorithm>
#include <cstddef>

#include "core/attention/heads/size.h"
#include "core/attention/models/head_projection.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"

namespace attendant {

HeadJoin::HeadJoin(const MultiHeadInput& input, std::int64_t capacity)
    : input_(input),
      value_dim_(input.head_value_dim()),
      output_dim_(input.output_dim()),
      is_empty_(Size(capacity)) {
  if (!projects()) return;
  weight_ = AlignedBuffer<float>(Size(output_dim_ * value_dim_));
  product_ = AlignedBuffer<float>(Size(output_dim_));
  sums_.resize(Size(capacity * output_dim_));
}

void HeadJoin::Start(std::int64_t count, float* outputs) {
  count_ = count;
  outputs_ = outputs;
  if (projects()) std::fill_n(sums_.begin(), count * output_dim_, 0.0);
}

void HeadJoin::StartHead(std::int64_t head) {
  head_ = head;
  if (!projects()) return;
  const MatrixView weight = input_.heads->output->weight.view();
  for (std::int64_t r = 0; r < output_dim_; ++r) {
    std::copy_n(weight.Row(r).data() + head * value_dim_, value_dim_,
                weight_.data() + r * value_dim_);
  }
}

void HeadJoin::Add(std::int64_t i, const float* pooled, bool is_empty) {
  is_empty_[Size(i)] = is_empty;
  if (!projects()) {
    std::copy_n(pooled, value_dim_,
                outputs_ + i * output_dim_ + head_ * value_dim_);
    return;
  }
  ActiveKernels().DotRows(pooled, weight_.data(), output_dim_, value_dim_,
                          product_.data());
  double* sums = sums_.data() + i * output_dim_;
  for (std::int64_t d = 0; d < output_dim_; ++d) {
    sums[d] += double{product_.data()[d]};
  }
}

absl::Status HeadJoin::Finish() {
  for (std::int64_t i = 0; i < count_; ++i) {
    float* output = outputs_ + i * output_dim_;
    if (is_empty_[Size(i)]) {
      std::fill_n(output, output_dim_, 0.0f);
      continue;
    }
    if (projects()) {
      const std::vector<float>& bias = input_.heads->output->bias;
      for (std::int64_t d = 0; d < output_dim_; ++d) {
        const double sum = sums_[Size(i * output_dim_ + d)];
        output[d] = static_cast<float>(
            sum + (bias.empty() ? 0.0 : double{bias[Size(d)]}));
      }
    }
    ATTENDANT_RETURN_IF_ERROR(
        CheckOutput(output, output_dim_, input_.names.values));
  }
  return absl::OkStatus();
}

}  // namespace attendant
